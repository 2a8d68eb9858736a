edit 's/FWD=.*/FWD=300/;s/BWD=.*/BWD=150/' primus_turbo/triton/gemm/gemm_fp8_kernel.py
cat <<'END'
{"modified_files": ["primus_turbo/triton/gemm/gemm_fp8_kernel.py"], "diff_summary": "four stages", "build_ok": true, "build_log": "",
 "kernel_snapshotted": true, "notes": ""}
END
