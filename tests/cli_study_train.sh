#!/bin/sh
# A study over `lathe train` in one line: results by the names of the command's own fields, trials
# ended early by what training reports on the way, and the same study read and continued by Optuna.
set -eu

lathe=$1
fixtures=$2
if ! /usr/bin/python3 -c 'import optuna' 2>/dev/null; then
  echo "skipped: python3-optuna is not installed"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
ln -s "$lathe" lathe # commands are ours by this name
PATH=$folder:$PATH
unset LATHE_STUDY LATHE_STORAGE LATHE_TRIAL LATHE_OWNER LATHE_REPORT_TRIAL || true

cat >space.toml <<'END'
[parameters]
rate = {type = "float", low = 1e-5, high = 1e-2, log = true}
END
"$fixtures" # a model DIR and data D that it learns in two epochs
# The first trial learns something and sets the median; the second, at a rate too small to, is ended
# by it.
lathe study create --study s --objective test_loss --direction minimize --space space.toml \
  --sampler random --seed 1 --pruner median:startup=1,warmup=1 >/dev/null
lathe study enqueue --study s --set rate=1e-2 >/dev/null
lathe study enqueue --study s --set rate=1e-5 >/dev/null
lathe study run --study s --trials 3 -- lathe train --model DIR --data D --epochs 6 --batch-size 4 \
  --validation 20 --lr {rate} --quiet \
  2>log >summary || { cat log; exit 1; }

/usr/bin/python3 - <<'END'
import json, warnings
warnings.simplefilter("ignore")
import optuna
from optuna.trial import TrialState

optuna.logging.set_verbosity(optuna.logging.ERROR)
storage = optuna.storages.RDBStorage("sqlite:///lathe-studies.db", skip_compatibility_check=True)
study = optuna.load_study(study_name="s", storage=storage)
assert study.direction == optuna.study.StudyDirection.MINIMIZE
assert study._storage.get_study_system_attrs(study._study_id)["study:metric_names"] == ["test_loss"]
trials = study.get_trials()
assert len(trials) == 3, trials
first, second = trials[0], trials[1]
assert first.state == TrialState.COMPLETE, first
assert first.params == {"rate": 1e-2}, first
assert sorted(first.intermediate_values) == [1, 2, 3, 4, 5, 6], first.intermediate_values
assert 0.6 < first.value < 0.8, first.value
assert first.user_attrs["steps"] == 60, first.user_attrs
assert second.state == TrialState.PRUNED, second
assert 1 <= max(second.intermediate_values) < 6, second.intermediate_values
assert second.value == second.intermediate_values[max(second.intermediate_values)]
# Optuna goes on with it.
study.optimize(lambda trial: trial.suggest_float("rate", 1e-5, 1e-2, log=True), n_trials=1)
END

lathe study list --study s --json >listed
grep -q '"trial":3,"state":"complete"' listed || { cat listed; exit 1; }
