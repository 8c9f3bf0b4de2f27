#!/usr/bin/env bash
# Makes .venv with osler (editable), torch, the test tools and what the case library imports. A stamp in .venv holds a
# digest of everything that decides what is installed: when it still fits, this script does nothing.
#
#   scripts/bootstrap.sh            PYTHON=python3.12 scripts/bootstrap.sh
#
# PYTHON  the interpreter to make .venv from (default: the first of python3, python3.13 … python3.10 that osler supports)
# VENV    where the environment is made (default: .venv)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=${VENV:-.venv}
stamp=$venv/.osler-stamp

supported() { "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; }

interpreter() {
  if [[ -n ${PYTHON:-} ]]; then
    supported "$PYTHON" || { echo "bootstrap: PYTHON=$PYTHON is not a working Python 3.10 to 3.13" >&2; return 1; }
    echo "$PYTHON"
    return
  fi
  local name
  for name in python3 python3.13 python3.12 python3.11 python3.10; do
    if command -v "$name" >/dev/null && supported "$name"; then
      echo "$name"
      return
    fi
  done
  echo "bootstrap: no Python 3.10 to 3.13 found; install one or set PYTHON" >&2
  return 1
}

# README and LICENSE are left out: they end up in the metadata, but no installed file changes with them.
wanted() {
  "$1" - <<'PY'
import hashlib, pathlib, sys

digest = hashlib.sha256(str(sys.version_info[:3]).encode())
for name in ("pyproject.toml", "constraints.txt", "hatch_build.py", "hook/osler-wake.pth", "scripts/bootstrap.sh"):
    digest.update(b"\0" + name.encode() + b"\0" + pathlib.Path(name).read_bytes())
print(digest.hexdigest())
PY
}

minor() { "$1" -c 'import sys; print(*sys.version_info[:2])'; }

python=$venv/bin/python
base=
if [[ -n ${PYTHON:-} ]]; then
  base=$(interpreter)
fi
remake=no
if [[ ! -x $python ]] || ! supported "$python"; then
  remake=yes
elif [[ -n $base && $(minor "$base") != "$(minor "$python")" ]]; then
  remake=yes
elif [[ -f $stamp ]]; then
  { read -r digest && read -r home; } <"$stamp" || true
  if [[ ${home:-} != "$PWD" ]]; then
    remake=yes # moved or copied: the scripts of an environment point at absolute paths
  elif [[ $digest == "$(wanted "$python")" ]]; then
    exit 0
  fi
fi

if [[ $remake == yes ]]; then
  base=${base:-$(interpreter)}
  echo "bootstrap: making $venv with $("$base" -V)"
  "$base" -m venv --clear "$venv"
fi
rm -f "$stamp"

# `pip install --group` came with pip 25.1.
if ! "$python" -c 'import sys, pip; sys.exit([*map(int, pip.__version__.split(".")[:2])] < [25, 1])' 2>/dev/null; then
  "$python" -m pip install -qq --upgrade 'pip>=25.1'
fi
echo "bootstrap: installing into $venv (a few minutes the first time)"
"$python" -m pip install -qq --disable-pip-version-check --constraint constraints.txt \
  --editable '.[torch,data,delta,images,onnx,spark,lsp]' --group dev --group casebook
printf '%s\n%s\n' "$(wanted "$python")" "$PWD" >"$stamp"
