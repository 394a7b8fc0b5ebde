#!/bin/sh
# Ctrl-C: the first ends the work at the next step with a line and 130, the second ends it at once.
#
#     tests/cli_interrupt.sh LATHE
set -u
lathe=$1
program=$(readlink -f "$lathe")
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

fail() {
  echo "$1"
  exit 1
}

"$lathe" export --model bert-tiny --out m --quiet >messages 2>&1 || fail "$(cat messages)"
(printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' && seq 6 30522) >m/vocab.txt
# Labels are matched by name, and those of the reviews have names.
sed -i 's/LABEL_0/negative/; s/LABEL_1/positive/' m/config.json

# Waits until the bit of SIGINT in a mask of /proc/PID/status is set (1) or clear (0).
wait_for_bit() { # pid mask value
  while :; do
    digits=$(sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status" 2>/dev/null)
    [ -n "$digits" ] || fail "the program ended before it was interrupted: $(cat messages)"
    [ $(((0x${digits#????????} >> 1) & 1)) -eq "$3" ] && return
    sleep 0.01
  done
}

# Waits until the program handles SIGINT. Before that it is still the shell that started it.
wait_for_handler() { # pid
  while [ "$(readlink "/proc/$1/exe")" != "$program" ]; do sleep 0.01; done
  wait_for_bit "$1" SigCgt 1
}

# Waits until the program has worked for so many hundredths of a second.
wait_for_work() { # pid hundredths
  while [ "$(cut -d ' ' -f 14 "/proc/$1/stat")" -lt "$2" ]; do sleep 0.01; done
}

# More reviews than can be made, and more than can be evaluated, before the signal arrives.
for reviews in 10000000 20000; do
  "$lathe" eval --model m --data reviews:test=$reviews --quiet --threads 1 >results 2>messages &
  pid=$!
  wait_for_handler $pid
  kill -INT $pid
  wait $pid
  status=$?
  [ $status -eq 130 ] || fail "one SIGINT: expected exit 130, not $status: $(cat messages)"
  [ "$(cat messages)" = interrupted ] || fail "one SIGINT: not \"interrupted\": $(cat messages)"
  [ ! -s results ] || fail "one SIGINT: expected no results: $(cat results)"
done

# A batch is not left before its end, and this one takes minutes: the second signal finds the first
# unanswered.
"$lathe" eval --model m --data reviews:test=4000 --device reference --batch-tokens 16777216 \
  --quiet --threads 1 >results 2>messages &
pid=$!
wait_for_handler $pid
wait_for_work $pid 200
kill -INT $pid
wait_for_bit $pid ShdPnd 0
kill -INT $pid
wait $pid
status=$?
[ $status -eq 130 ] || fail "two SIGINTs: expected exit 130, not $status: $(cat messages)"
[ ! -s messages ] || fail "two SIGINTs: expected no last words: $(cat messages)"

# A reader that waits for its input is interrupted as well.
mkfifo input
"$lathe" predict --model m <input >results 2>messages &
pid=$!
exec 3>input
wait_for_handler $pid
kill -INT $pid
wait $pid
status=$?
[ $status -eq 130 ] || fail "waiting for input: expected exit 130, not $status: $(cat messages)"
[ "$(cat messages)" = interrupted ] || fail "waiting for input: $(cat messages)"
