#!/bin/sh
# A run that is killed outright leaves its trial behind: its program dies with it, and another run
# takes the same trial up with the same parameters once the lease has run out.
#
#     tests/cli_study_takeover.sh LATHE
set -u
lathe=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

fail() {
  echo "$1"
  exit 1
}

export LATHE_STUDY=s LATHE_STORAGE=sqlite:///s.db
printf '[parameters]\nx = {type = "float", low = 0, high = 1}\n' >space.toml
"$lathe" study create --space space.toml --sampler random >messages 2>&1 || fail "$(cat messages)"

"$lathe" study run --trials 1 --lease 1s --quiet -- \
  sh -c 'echo {x} >first; echo $$ >program; exec sleep 1000' >messages 2>&1 &
run=$!
while [ ! -s program ]; do
  kill -0 $run 2>/dev/null || fail "the run ended by itself: $(cat messages)"
  sleep 0.05
done
kill -9 $run
wait $run 2>/dev/null
while kill -0 "$(cat program)" 2>/dev/null; do sleep 0.05; done

"$lathe" study run --trials 1 --lease 1s --quiet -- \
  sh -c 'echo {x} >second; echo $LATHE_ATTEMPT >attempt; echo 0.5' >messages 2>&1 || fail "$(cat messages)"
cmp -s first second || fail "other parameters: $(cat first) became $(cat second)"
[ "$(cat attempt)" = 2 ] || fail "expected attempt 2, not $(cat attempt)"
[ "$(head -1 messages)" = "1 trial: 1 complete; the study has 1" ] || fail "$(cat messages)"

# Four workers share what is to do; every trial has one result.
"$lathe" study run --trials 41 --workers 4 --quiet -- sh -c 'echo {trial} >>seen; echo {x}' \
  >messages 2>&1 || fail "$(cat messages)"
[ "$(head -1 messages)" = "40 trials: 40 complete; the study has 41" ] || fail "$(cat messages)"
[ "$(sort -n seen | uniq | wc -l)" = 40 ] || fail "trials evaluated twice: $(sort -n seen | uniq -d)"
