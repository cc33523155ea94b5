#!/usr/bin/env python3
"""fortran.py HEADERS MODULE...: do the Fortran modules have all of the C interface, with the same types?

Compares with shardmat.h in the folder HEADERS: every function of symbols.txt, its arguments and its result; every struct, its
components and its size; every constant. Needs the C preprocessor, but no Fortran compiler. A difference wants an edit of
runtime/c/*.f90.
"""

import ctypes
import pathlib
import re
import subprocess
import sys

SYMBOLS = pathlib.Path(__file__).parent / "symbols.txt"
LEFT_OUT = {"shardmat_context_create_mpi": "takes an MPI_Comm of C; Fortran has shardmat_context_create_fortran()"}
# Fields and parameters that have another name in Fortran, most of them because the name has a meaning there.
RENAMED = {"size": "size_", "type": "value_type", "data": "values"}
RENAMED_PARAMETERS = {"type": ["value_type"], "in": ["features_in"], "out": ["features_out"], "result": ["solved", "ranked"],
                      "results": ["solved"], "norms": ["norms", "numbers"], "changes": ["numbers"]}
KINDS = {"int": "integer(c_int)", "int32_t": "integer(c_int32_t)", "int64_t": "integer(c_int64_t)", "size_t": "integer(c_size_t)",
         "double": "real(c_double)", "char": "character(kind=c_char)"}
SIZES = {"integer(c_int)": ctypes.c_int, "integer(c_int32_t)": ctypes.c_int32, "integer(c_int64_t)": ctypes.c_int64, "integer(c_size_t)": ctypes.c_size_t,
         "real(c_double)": ctypes.c_double, "type(c_ptr)": ctypes.c_void_p, "type(c_funptr)": ctypes.c_void_p}

problems = []


def expect(condition, message):
    if not condition:
        problems.append(message)


# ---- C ----

def declared(text):
    """("const double *", "x") of "const double* x"."""
    words = re.fullmatch(r"(.*?[\s*])(\w+)", text.strip())
    return re.sub(r"\s*\*", "*", words[1].strip()), words[2]


def parameters(text):
    return [] if text.strip() == "void" else [declared(one) for one in text.split(",")]


def fields(body, prototypes):
    """[(name, kind)] of a struct. The type of a callback goes to `prototypes`."""
    found = []
    for statement in filter(str.strip, body.split(";")):
        callback = re.fullmatch(r"\s*(\w+) \(\*(\w+)\)\((.*)\)\s*", statement, re.DOTALL)
        if callback:
            prototypes.append((f"shardmat_{callback[2]}", callback[1], parameters(callback[3])))
            found.append((callback[2], "type(c_funptr)"))
            continue
        first, *others = statement.split(",")
        of, name = declared(first)
        for one in [name, *(other.strip().lstrip("*") for other in others)]:
            found.append((one, "type(c_ptr)" if of.endswith("*") else KINDS[of]))
    return found


def read_header(headers):
    text = subprocess.run(["cc", "-E", "-P", "-x", "c", f"{headers}/shardmat.h"], check=True, capture_output=True, text=True).stdout
    prototypes = [(name, declared(f"{result} x")[0], parameters(given)) for result, name, given in re.findall(
        r"^((?:const )?\w+\s*\**)\s*(shardmat_\w+)\(([^;{}]*)\);", text, re.MULTILINE)]
    structs = {name: fields(body, prototypes) for body, name in re.findall(r"typedef struct {([^{}]*)} (shardmat_\w+);", text)}
    constants = {name.lower(): number for name, number in re.findall(r"\b(SHARDMAT_\w+) = (\d+)", text)}
    return prototypes, structs, constants


# ---- Fortran ----

def statements(path):
    text = re.sub(r"&\s*\n\s*&?", "", pathlib.Path(path).read_text().lower())
    return [line for line in (re.sub(r"!.*", "", line).strip() for line in text.splitlines()) if line]


def entities(line):
    """(kind, attributes, [(name, the rest)]) of a declaration."""
    left, right = line.split("::")
    kind, *attributes = re.split(r",\s*(?![^()]*\))", left.strip())
    names = [re.fullmatch(r"(\w+)\s*(.*)", one.strip()).groups() for one in re.split(r",(?![^()]*\))", right)]
    return kind.strip(), [attribute.strip() for attribute in attributes], names


def read_modules(paths):
    functions, types, constants, inside = {}, {}, {}, None
    for line in (line for path in paths for line in statements(path)):
        begin = re.fullmatch(r"(?:pure )?(?:function|subroutine) (\w+)\((.*)\)\s*bind\(c\)(?: result\((\w+)\))?", line)
        if begin:
            name, given, result = begin.groups()
            arguments = [one.strip() for one in given.split(",") if one.strip()]
            inside = functions[name] = {"arguments": arguments, "result": result, "is": {}}
        elif line.startswith("type, bind(c)"):
            inside = types[line.split("::")[1].strip()] = []
        elif line.startswith("end "):
            inside = None
        elif "::" in line and "parameter" in line:
            constants.update((name, rest.lstrip("= ")) for name, rest in entities(line)[2])
        elif "::" in line and isinstance(inside, dict):
            kind, attributes, names = entities(line)
            inside["is"].update((name, (kind, attributes)) for name, _ in names)
        elif "::" in line and isinstance(inside, list):
            kind, _, names = entities(line)
            inside.extend((name, kind, rest.lstrip("= ")) for name, rest in names)
    return {name: of for name, of in functions.items() if name.startswith("shardmat_")}, types, constants


# ---- Both ----

def passes(c_type, kind, attributes, structs):
    """Does the Fortran argument pass what the C parameter takes?"""
    constant, star, of = c_type.startswith("const "), c_type.count("*"), c_type.removeprefix("const ").rstrip("*").strip()
    if star == 0:
        return "value" in attributes and kind == KINDS[of]
    if "value" in attributes:
        return star == 1 and kind == "type(c_ptr)"
    if star == 2:
        return kind == "type(c_ptr)" and "intent(out)" in attributes
    intents = {"intent(in)"} if constant else {"intent(inout)"} if of in structs else {"intent(inout)", "intent(out)"}
    return kind == (f"type({of})" if of in structs else KINDS.get(of)) and not intents.isdisjoint(attributes)


def compare_function(name, result, given, functions, structs):
    if name not in functions:
        return expect(False, f"{name}() is missing")
    of = functions[name]
    expect(len(given) == len(of["arguments"]), f"{name}() has {len(of['arguments'])} arguments, in C {len(given)}")
    for argument, (c_type, parameter) in zip(of["arguments"], given):
        expect(argument in RENAMED_PARAMETERS.get(parameter, [parameter]), f"{name}(): {argument} is where C has {parameter}")
        kind, attributes = of["is"].get(argument, ("nothing", []))
        expect(passes(c_type, kind, attributes, structs),
               f"{name}(): {argument} is {', '.join([kind, *attributes])}; in C: {c_type}")
        expect(argument != "options" or "optional" in attributes, f"{name}(): options is not optional; C takes NULL")
        # A compiler may else assume that arrays whose addresses a struct holds are neither kept nor written.
        expect(not kind.startswith("type(shardmat_") or "target" in attributes, f"{name}(): {argument} wants the attribute target")
    wanted = None if result == "void" else "type(c_ptr)" if result.endswith("*") else KINDS[result]
    is_result = of["is"].get(of["result"], (None, []))[0]
    expect(is_result == wanted, f"{name}() returns {is_result}, in C {result}")


def compare_struct(name, wanted, types):
    if name not in types:
        return expect(False, f"the type {name} is missing")
    names = [(RENAMED.get(field, field), kind) for field, kind in wanted]
    found = [(component, kind) for component, kind, _ in types[name]]
    if names != found:
        first = next(i for i in range(max(len(names), len(found))) if names[i:i + 1] != found[i:i + 1])
        text = [" ".join(reversed(one[first])) if first < len(one) else "nothing" for one in (found, names)]
        return expect(False, f"the type {name} has {text[0]} as component {first + 1}; in C: {text[1]}")
    layout = type(name, (ctypes.Structure,), {"_fields_": [(field, SIZES[kind]) for field, kind in names]})
    size = next((default for component, _, default in types[name] if component == "size_"), None)
    expect(size in (None, str(ctypes.sizeof(layout))), f"{name}%size_ is {size}; in C: {ctypes.sizeof(layout)}")


def main():
    headers, *modules = sys.argv[1:]
    prototypes, structs, constants = read_header(headers)
    functions, types, own_constants = read_modules(modules)
    symbols = set(SYMBOLS.read_text().split()) - set(LEFT_OUT)
    for name in symbols - {name for name, _, _ in prototypes}:
        expect(False, f"{name} of symbols.txt was not found in shardmat.h")
    for name, result, given in prototypes:
        compare_function(name, result, given, functions, structs)
    for name, wanted in structs.items():
        compare_struct(name, wanted, types)
    for name, number in constants.items():
        expect(own_constants.get(name) == number, f"{name} is {own_constants.get(name)}; in C: {number}")
    for name in [*functions.keys() - symbols - {"shardmat_monitor", "shardmat_apply", "shardmat_watch"}, *types.keys() - structs.keys(),
                 *own_constants.keys() - constants.keys()]:
        expect(False, f"{name} is not in shardmat.h")
    if len(functions) < 40 or len(structs) < 10 or len(constants) < 10:
        expect(False, f"found only {len(functions)} functions, {len(structs)} structs, {len(constants)} constants")
    if problems:
        sys.exit("The Fortran modules differ from shardmat.h:\n  " + "\n  ".join(problems))
    print(f"{len(functions)} functions, {len(types)} types and {len(own_constants)} constants, as in C; left out: "
          + "; ".join(f"{name}() {why}" for name, why in LEFT_OUT.items()))


main()
