#!/bin/sh
# Starts the installed kbsync. A desktop starts programs without the folders that a shell adds to PATH.
PATH="$PATH:/usr/local/bin:/opt/homebrew/bin:$HOME/.local/bin:$HOME/.npm-global/bin"
command -v kbsync >/dev/null || {
  echo "kbsync is not installed: run npm install --global kbsync" >&2
  exit 127
}
exec kbsync mcp
