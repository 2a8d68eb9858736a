grep -q 'dumped IR' sandbox/ir.txt || exit 9
grep -q 'TMA replace gather' sandbox/perf_results.md || exit 8
edit 's/^LATENCY = .*/LATENCY = 0.375/' src/tilegym/ops/cutile/rms_norm.py; echo '{"summary": "hints"}'
