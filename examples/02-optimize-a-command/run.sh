#!/bin/sh
# Minimizes objective.sh twice: in a loop of our own around ask and tell, and with `lathe study run`,
# which does the same in several processes at once. Needs `lathe` on the path.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export LATHE_STORAGE=sqlite:///studies.db

# 1. Ask for parameters, evaluate, tell the result. The study, its sampler and its seed are in the
#    database, so the loop may be stopped and started again, here or elsewhere.
export LATHE_STUDY=by-hand
lathe study create --direction minimize --space "$here/space.toml" --sampler tpe --seed 1
lathe study enqueue --set x=0 --set shape=bowl
for i in $(seq 20); do
  eval "$(lathe study ask --shell)"
  lathe study tell --value "$("$here/objective.sh")" >tell.txt
done
lathe study list | grep -c complete

# 2. The same without the loop: two processes at a time until there are forty trials.
export LATHE_STUDY=by-run
lathe study create --direction minimize --space "$here/space.toml" --sampler tpe --seed 1
lathe study run --workers 2 --trials 40 --quiet -- "$here/objective.sh" | head -1

# How good it is, in no more digits than every machine agrees on.
lathe study best --json | sed 's/.*"value":\([0-9.e-]*\).*/\1/' |
  awk '{ print ($1 < 2) ? "close to the least value" : "far from the least value: " $1 }'
lathe study plot --out report.html
