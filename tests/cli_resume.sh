#!/bin/sh
# A training run that is killed or stopped again and again ends in the same weights as one that is
# not, whatever the number of threads.
#
#     tests/cli_resume.sh LATHE
set -u
lathe=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

fail() {
  echo "$1"
  exit 1
}

train() { # out threads
  exec "$lathe" train --model bert-tiny --data reviews:train=96,test=8 --epochs 2 --batch-size 8 \
    --length 24 --validation 16 --validate-every 5 --checkpoint-every 2 --no-eval --quiet \
    --resume --out "$1" --threads "$2" >results 2>messages
}

(train whole 1) || fail "$(cat messages)"

# Kills the run once it has come to a step, at whatever it is doing then.
run_until() { # step signal
  (train run 2) &
  pid=$!
  while kill -0 $pid 2>/dev/null; do
    grep -q "\"step\":$1," run/metrics.jsonl 2>/dev/null && kill "-$2" $pid 2>/dev/null && break
    sleep 0.01
  done
  wait $pid
}

for step in 1 3 6 8; do run_until $step KILL; done
run_until 12 TERM
status=$?
# On a fast machine the run may have ended before the signal came.
case $status in
  0) ;;
  143) grep -q "lathe train --resume --out run" messages || fail "SIGTERM: $(cat messages)" ;;
  *) fail "SIGTERM: expected exit 143, not $status: $(cat messages)" ;;
esac
(train run 2) || fail "$(cat messages)"
cmp whole/model.safetensors run/model.safetensors || fail "the weights differ"
steps() { grep -o '"step":[0-9]*,"epoch":[0-9.]*,"[a-z_]*loss":[0-9.e-]*' "$1/metrics.jsonl"; }
steps whole >expected
steps run | cmp - expected || fail "the metrics differ"
"$lathe" info --model run >/dev/null 2>messages || fail "$(cat messages)"
