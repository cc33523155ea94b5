"""The package as a whole: its stubs, its version, and the examples of its guide."""

import ast
import inspect
import os
import pathlib
import unittest

import shardmat


class Version(unittest.TestCase):
    def test_version(self):
        self.assertEqual(shardmat.__version__, shardmat.version())
        with self.assertRaisesRegex(AttributeError, "no attribute 'nothing'"):
            shardmat.nothing


class Stubs(unittest.TestCase):
    """__init__.pyi has the names and parameters that the package has."""

    def compare(self, node, thing, where):
        if isinstance(node, ast.FunctionDef):
            thing = thing.fget if isinstance(thing, property) else thing
            expected = [a.arg for a in node.args.posonlyargs + node.args.args + node.args.kwonlyargs if a.arg not in ("self", "cls")]
            expected += [a.arg for a in (node.args.vararg, node.args.kwarg) if a]
            found = [p.name for p in inspect.signature(thing).parameters.values() if p.name != "self"]
            self.assertEqual(sorted(expected), sorted(found), where)
        elif isinstance(node, ast.ClassDef):
            names = {child.name for child in node.body if isinstance(child, ast.FunctionDef)}
            public = {name for name in vars(thing) if not name.startswith("_") and callable(getattr(thing, name))}
            self.assertLessEqual(public, names | {"results", "x"}, where)
            for child in node.body:
                if isinstance(child, ast.FunctionDef):
                    of_class = inspect.getattr_static(thing, child.name)
                    found = getattr(thing, child.name) if isinstance(of_class, classmethod) else of_class
                    self.compare(child, found, f"{where}.{child.name}")

    def test_stubs(self):
        stub = pathlib.Path(shardmat.__file__).with_suffix(".pyi")
        nodes = {node.name: node for node in ast.parse(stub.read_text()).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        self.assertEqual(sorted(nodes), sorted(shardmat.__all__))
        for name, node in nodes.items():
            self.compare(node, getattr(shardmat, name), name)


def load_tests(loader, tests, pattern):
    """Also the examples of the guide."""
    import doctest

    if os.environ.get("TEST_GUIDE"):
        tests.addTests(doctest.DocFileSuite(os.environ["TEST_GUIDE"], module_relative=False))
    return tests


if __name__ == "__main__":
    unittest.main()
