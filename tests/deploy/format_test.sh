#!/usr/bin/env bash
# format_test.sh: every tracked C++ and CUDA file is as clang-format 14 with .clang-format writes it. Names the files that are
# not and the command that formats them.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

formatter=""
for candidate in clang-format-14 clang-format; do
  if "$candidate" --version 2> /dev/null | grep -q "version 14\."; then formatter=$candidate; break; fi
done
if [ -z "$formatter" ]; then
  echo "skipped: no clang-format 14; other versions format differently (deploy/install-dependencies.sh --tests, package clang-format-14)"
  exit 0
fi

# check DIR: 1 if files of this checkout differ.
check() {
  local -a files differ
  cd "$1"
  mapfile -t files < <(git ls-files -- '*.cpp' '*.h' '*.cu' '*.cuh')
  if [ ${#files[@]} -eq 0 ]; then echo "$1: no tracked C++ file"; return 1; fi
  mapfile -t differ < <(printf '%s\0' "${files[@]}" | xargs -0 -n 32 -P 2 "$formatter" --dry-run 2>&1 |
                          sed -n 's/^\(.*\):[0-9]*:[0-9]*: warning: .*-Wclang-format-violations.*/\1/p' | sort -u)
  if [ ${#differ[@]} -eq 0 ]; then echo "${#files[@]} files are formatted"; return 0; fi
  printf '%s\n' "These files are not formatted:" "${differ[@]/#/  }" "Format them: $formatter -i ${differ[*]}"
  return 1
}

if ! git -C "$root" rev-parse --git-dir > /dev/null 2>&1; then
  echo "skipped: $root is no git checkout, so nothing says which files are tracked"
  exit 0
fi

# A file that is not formatted is found and named.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git init -q "$work"
cp "$root/.clang-format" "$work"
printf 'int  wrong( );\n' > "$work/wrong.h"
printf 'int right();\n' > "$work/right.cu"
git -C "$work" add .
if said=$(check "$work") || [[ $said != *"Format them: $formatter -i wrong.h" ]]; then
  echo "This test does not find a file that is not formatted, but says: $said" >&2
  exit 1
fi
check "$root"
