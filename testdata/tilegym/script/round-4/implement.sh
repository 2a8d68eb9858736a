edit 's/^LATENCY = .*/LATENCY = 0.371/' src/tilegym/ops/cutile/rms_norm.py; echo '{"summary": "store"}'
