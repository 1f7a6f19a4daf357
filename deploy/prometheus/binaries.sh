#!/usr/bin/env bash
# Print a folder with prometheus, promtool, alertmanager and amtool: those on PATH, or Debian's packages unpacked
# (not installed) into a cache. Exit 69 with one line when neither is there.
set -euo pipefail
if command -v prometheus promtool prometheus-alertmanager amtool > /dev/null; then
  dirname "$(command -v promtool)"
  exit 0
fi
cache="${XDG_CACHE_HOME:-$HOME/.cache}/aftercheck/prometheus"
if [ ! -x "$cache/usr/bin/promtool" ] || [ ! -x "$cache/usr/bin/prometheus-alertmanager" ]; then
  command -v apt-get dpkg > /dev/null || { echo "no prometheus on PATH and no apt-get: install prometheus and alertmanager" >&2; exit 69; }
  work="$(mktemp -d)"
  trap 'rm -rf "$work"' EXIT
  (cd "$work" && apt-get -qq download prometheus prometheus-alertmanager) > /dev/null 2>&1 \
    || { echo "apt-get cannot fetch prometheus and prometheus-alertmanager: run apt-get update, or install them" >&2; exit 69; }
  for package in "$work"/*.deb; do dpkg -x "$package" "$work/tree"; done
  mkdir -p "$(dirname "$cache")"
  rm -rf "$cache"
  mv "$work/tree" "$cache"
fi
echo "$cache/usr/bin"
