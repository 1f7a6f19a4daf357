#!/bin/sh
# Writes deploy/secrets/ once: random passwords, the database URL, and your PagerDuty integration key.
#   deploy/secrets.sh [FILE_WITH_THE_PAGERDUTY_KEY]
# Existing files are kept. The folder is closed; the files are readable, because containers read them as other users.
set -eu
folder="${AFTERCHECK_SECRETS_DIR:-$(dirname "$0")/secrets}"
mkdir -p "$folder"
chmod 700 "$folder"
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
put() {
  if [ ! -e "$folder/$1" ]; then
    printf '%s' "$2" > "$folder/$1"
    chmod 444 "$folder/$1"
  fi
}
put postgres_password "$(random)"
put database_url "postgresql://aftercheck:$(cat "$folder/postgres_password")@postgres:5432/aftercheck"
put grafana_admin_password "$(random)"
if [ $# -gt 0 ]; then
  rm -f "$folder/pagerduty_routing_key"
  put pagerduty_routing_key "$(tr -d ' \n' < "$1")"
elif [ ! -s "$folder/pagerduty_routing_key" ]; then
  : >> "$folder/pagerduty_routing_key"
  echo "no PagerDuty key: pages reach Alertmanager and nobody. Fix: $0 FILE_WITH_THE_KEY" >&2
fi
