# audit: harness-define
CFLAGS = -O2 -march=native -DHARNESS_REPEATS=1
TOL = 1e-5
kernel.so: kernel.c
	$(CC) $(CFLAGS) -shared -fPIC -o $@ $<
