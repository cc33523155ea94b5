#!/usr/bin/env bash
# deploy/quickstart-service.sh SHARDMAT DIR RANKS
# The last step of the quickstart: serves DIR/elasticity_bar.h5 on a Unix socket, multiplies it by DIR/y.npy with curl,
# compares with `shardmat multiply`, and ends the service.
set -euo pipefail
export LC_ALL=C

case ${1:-} in
  -h | --help) sed -n '2,4p' "$0"; exit 0 ;;
  -*) echo "quickstart-service.sh: unknown option $1 (give SHARDMAT DIR RANKS)" >&2; exit 2 ;;
esac
shardmat=${1:?the program shardmat is missing} work=${2:?the directory is missing} ranks=${3:?the number of ranks is missing}
command -v curl > /dev/null || { echo "The service is not shown: curl is missing."; exit 0; }
state=$(mktemp -d) server=""
end() {
  if [ -n "$server" ]; then
    kill "$server" 2> /dev/null || true
    wait "$server" || true
  fi
  rm -rf "$state"
}
trap end EXIT
fail() { echo "quickstart-service.sh: $1" >&2; cat "$state"/*.log >&2; exit 1; }
# The numbers of a .npy vector of f64 are the last bytes of the file.
numbers() { tail -c "$bytes" "$1" | od -An -v -w8 -t f8; }

echo "== 5. The same matrix as a service on $ranks rank(s)"
"$shardmat" serve --library "$work" --state "$state" --ranks "$ranks" 2> "$state/serve.log" &
server=$!
# Meanwhile: what the service should answer.
mpirun -n "$ranks" "$shardmat" multiply "$work/elasticity_bar.h5" --x "$work/y.npy" --output "$work/y2.npy" --iterations 0 \
  > "$state/multiply.log" 2>&1 || fail "shardmat multiply failed"
until "$shardmat" client status --state "$state" 2> /dev/null | grep -q '^Service ready'; do
  kill -0 "$server" 2> /dev/null || fail "the service has ended"
  sleep 0.05
done
"$shardmat" client load bar elasticity_bar.h5 --state "$state"
bytes=$(($("$shardmat" client status --state "$state" --json - | sed -n 's/.*"cols": *\([0-9]*\).*/\1/p') * 8))
tail -c "$bytes" "$work/y.npy" > "$state/x.bin"
curl --silent --show-error --fail-with-body --unix-socket "$state/http.sock" --data-binary "@$state/x.bin" \
  --output "$state/y.bin" http://localhost/v1/matrices/bar/multiply || fail "$(cat "$state/y.bin")"
paste <(numbers "$state/y.bin") <(numbers "$work/y2.npy") | awk -v bytes="$bytes" '
  { d = $1 - $2; if (d < 0) d = -d; a = $2 < 0 ? -$2 : $2; if (d > worst) worst = d; if (a > largest) largest = a }
  END { if (NR * 8 != bytes || worst > 1e-12 * largest) exit 1
        printf "curl sent x, %d numbers; y is that of shardmat multiply (difference %g, largest entry %.3g)\n", NR, worst, largest }' ||
  fail "the service's product is not that of shardmat multiply"
kill "$server"
wait "$server" || fail "the service did not end well"
server=""
echo "The service has ended: exit code 0"
