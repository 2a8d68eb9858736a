edit 's/^RESULT = .*/RESULT = 2 + 3 + 1/' src/tilegym/ops/cutile/rms_norm.py; echo '{"summary": "broken"}'
