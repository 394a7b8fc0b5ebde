#!/bin/sh
# Ctrl-C while a tool works for `lathe synth` or `lathe simulate`: the tool and what it started end,
# one line and 130 are left, nothing that was begun is taken for complete, and the next run works.
#
#     tests/cli_interrupt_hardware.sh LATHE
set -u
lathe=$(readlink -f "$1")
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export LATHE_CACHE="$folder/cache"

fail() {
  echo "$1"
  exit 1
}

"$lathe" quantize --model mlp:4,8 --weights fixed:8,7 --activations fixed:8,3 --outputs fixed:8,7 \
  --out q --quiet >messages 2>&1 || fail "$(cat messages)"
"$lathe" emit --model q --out d >messages 2>&1 || fail "$(cat messages)"

# A tool that says when it has begun, and its own child's number, and never ends.
mkdir slow
cat >slow/tool <<END
#!/bin/sh
case "\$*" in *--getenv*) exec "$(command -v verilator)" "\$@" ;; esac
sleep 1000 &
echo \$! >"$folder/begun.new"
mv "$folder/begun.new" "$folder/begun"
wait
END
chmod +x slow/tool

is_alive() { # pid: an orphan that was killed may stay in the list until somebody collects it
  state=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c 1)
  [ -n "$state" ] && [ "$state" != Z ] && [ "$state" != X ]
}

interrupt() { # tool command...
  tool=$1
  shift
  rm -f begun slow/yosys slow/verilator slow/g++
  ln slow/tool "slow/$tool"
  PATH="$folder/slow:$PATH" "$lathe" "$@" >results 2>messages &
  pid=$!
  while [ ! -e begun ]; do
    kill -0 $pid 2>/dev/null || fail "$*: ended before it was interrupted: $(cat messages)"
    sleep 0.01
  done
  kill -INT $pid
  wait $pid
  status=$?
  [ $status -eq 130 ] || fail "$* in $tool: expected exit 130, not $status: $(cat messages)"
  [ "$(cat messages)" = interrupted ] || fail "$* in $tool: $(cat messages)"
  [ ! -s results ] || fail "$* in $tool: expected no results: $(cat results)"
  child=$(cat begun)
  while is_alive "$child"; do sleep 0.01; done
  [ -z "$(find cache -name 'new-*' 2>/dev/null)" ] || fail "$* in $tool: left $(find cache -name 'new-*')"
}

if command -v yosys >/dev/null; then
  interrupt yosys synth d
  "$lathe" synth d >results 2>messages || fail "synth, once more: $(cat messages)"
  grep -q '^DSP48E1 *[1-9]' results || fail "synth, once more: $(cat results)"
else
  skipped=yosys
fi
if command -v verilator >/dev/null; then
  interrupt g++ simulate d
  interrupt verilator simulate d
  "$lathe" simulate d >results 2>messages || fail "simulate, once more: $(cat messages)"
  grep -q ' 0 differ$' results || fail "simulate, once more: $(cat results)"
else
  skipped=verilator
fi
[ -z "${skipped:-}" ] || { echo "skipped: $skipped is not installed"; exit 77; }
