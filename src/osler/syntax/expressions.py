"""Abstract evaluation of expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable

from osler.syntax.calls import Calls
from osler.syntax.trace import Block, Branch, Loop
from osler.syntax.values import CONSTANT, FUNCTION, MAPPING, RESULT, SEQUENCE, Definition, Value

SYMBOLS: dict[type, str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.BitAnd: "&",
}


class Expressions(Calls):
    """Evaluates expressions; the statements are in `osler.syntax.interpreter`."""

    def value(self, node: ast.expr) -> Value:
        """The value of an expression; the calls in it are recorded on the way."""
        action = self.EXPRESSIONS.get(type(node))
        if action is not None:
            return action(self, node)
        parts = tuple(self.value(c) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr))
        return self.result(type(node).__name__, node, parts)

    def _name(self, node: ast.Name) -> Value:
        return self.lookup(node.id, node)

    def _constant(self, node: ast.Constant) -> Value:
        return Value(CONSTANT, "", self.site(node), self.order, constant=node.value, node=node)

    def _attribute(self, node: ast.Attribute) -> Value:
        return self.attribute(self.value(node.value), node.attr, node)

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        items = []
        for one in node.elts:
            value = self.value(one.value if isinstance(one, ast.Starred) else one)
            items += value.items if isinstance(one, ast.Starred) and value.kind == SEQUENCE else [value]
        return Value(SEQUENCE, type(node).__name__, self.site(node), self.tick(), items=items, node=node)

    def _mapping(self, node: ast.Dict) -> Value:
        out = Value(MAPPING, "", self.site(node), self.tick(), node=node)
        for key, expression in zip(node.keys, node.values):
            value = self.value(expression)
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                out.attributes[f"[{key.value}]"] = value
            elif key is None and value.kind == MAPPING:
                out.attributes.update(value.attributes)
            elif key is not None:
                self.value(key)
            out.later.append((self.order, value))
        return out

    def _subscript(self, node: ast.Subscript) -> Value:
        owner = self.value(node.value)
        index = self.value(node.slice)
        if index.kind == CONSTANT:
            if owner.kind == SEQUENCE and isinstance(index.constant, int):
                try:
                    return owner.items[index.constant]
                except IndexError:
                    pass
            if isinstance(index.constant, str) and f"[{index.constant}]" in owner.attributes:
                return owner.attributes[f"[{index.constant}]"]
        return self.result("[]", node, (owner, index))

    def _slice(self, node: ast.Slice) -> Value:
        parts = tuple(self.value(p) for p in (node.lower, node.upper, node.step) if p is not None)
        return Value(RESULT, "slice", self.site(node), self.order, parts, node=node)

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        return self.result(SYMBOLS.get(type(node.op), "?"), node, (left, right))

    def _unary(self, node: ast.UnaryOp) -> Value:
        operand = self.value(node.operand)
        number = operand.constant
        if operand.kind == CONSTANT and isinstance(node.op, ast.USub) and isinstance(number, (int, float)):
            return Value(CONSTANT, "", self.site(node), self.order, constant=-number, node=node)
        return self.result("not" if isinstance(node.op, ast.Not) else "-", node, (operand,))

    def _compare(self, node: ast.Compare) -> Value:
        parts = (self.value(node.left), *(self.value(c) for c in node.comparators))
        return self.result("compare", node, parts)

    def _either(self, node: ast.BoolOp) -> Value:
        return self.join([self.value(v) for v in node.values], node)

    def _conditional(self, node: ast.IfExp) -> Value:
        test = self.value(node.test)
        if not any(isinstance(n, ast.Call) for arm in (node.body, node.orelse) for n in ast.walk(arm)):
            return self.join((self.value(node.body), self.value(node.orelse)), node)
        branch = Branch(node, self.site(node), self.block, order=self.tick(), test=test)
        self.block.items.append(branch)
        outer = self.block
        values = []
        for arm in (node.body, node.orelse):
            self.block = Block(branch)
            branch.blocks.append(self.block)
            values.append(self.value(arm))
        self.block = outer
        branch.end = self.order
        return self.join(values, node)

    def _walrus(self, node: ast.NamedExpr) -> Value:
        value = self.value(node.value)
        self.assign(node.target, value)
        return value

    def _lambda(self, node: ast.Lambda) -> Value:
        frame = self.frame
        scope = frame.scope if frame.names is frame.top else (frame.names, *frame.scope)
        definition = Definition("<lambda>", node, frame.module, scope)
        return Value(FUNCTION, "<lambda>", self.site(node), self.tick(), definition=definition, node=node)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        names = self.frame.names
        before = dict(names)
        outer = self.block
        over: list[Value] = []
        for generator in node.generators:
            source = self.value(generator.iter)
            over.append(source)
            loop = Loop(node, self.site(node), self.block, order=self.tick(), over=source)
            self.block.items.append(loop)
            self.block = Block(loop)
            loop.blocks.append(self.block)
            loop.target = self.element(source, node)
            self.assign(generator.target, loop.target)
            for condition in generator.ifs:
                self.value(condition)
        if isinstance(node, ast.DictComp):
            parts: tuple[Value, ...] = (self.value(node.key), self.value(node.value))
        else:
            parts = (self.value(node.elt),)
        self.block = outer
        names.clear()
        names.update(before)
        return self.result("comprehension", node, (*parts, *over))

    def _await(self, node: ast.Await) -> Value:
        return self.value(node.value)

    def _yield(self, node: ast.Yield | ast.YieldFrom) -> Value:
        value = self.value(node.value) if node.value is not None else Value(CONSTANT, "None")
        self.frame.yields.append(value)
        return self.result("yield", node)

    def _starred(self, node: ast.Starred) -> Value:
        return self.value(node.value)

    EXPRESSIONS: dict[type, Callable[..., Value]] = {  # noqa: RUF012 - the same for every instance
        ast.Name: _name,
        ast.Constant: _constant,
        ast.Attribute: _attribute,
        ast.Tuple: _sequence,
        ast.List: _sequence,
        ast.Set: _sequence,
        ast.Dict: _mapping,
        ast.Subscript: _subscript,
        ast.Slice: _slice,
        ast.BinOp: _binary,
        ast.UnaryOp: _unary,
        ast.Compare: _compare,
        ast.BoolOp: _either,
        ast.IfExp: _conditional,
        ast.NamedExpr: _walrus,
        ast.Lambda: _lambda,
        ast.ListComp: _comprehension,
        ast.SetComp: _comprehension,
        ast.GeneratorExp: _comprehension,
        ast.DictComp: _comprehension,
        ast.Await: _await,
        ast.Yield: _yield,
        ast.YieldFrom: _yield,
        ast.Starred: _starred,
        ast.Call: Calls.call_written,
    }
