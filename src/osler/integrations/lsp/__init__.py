"""A language server: findings while a file is edited, fixes as code actions, `osler explain` on hovering.

Started by `osler lint --server` on stdin and stdout; the form is the Language Server Protocol 3.17.
"""

from osler.integrations.lsp.server import serve

__all__ = ["serve"]
