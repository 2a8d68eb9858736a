# audit: fast-math
CFLAGS = -O2 -march=native -ffast-math
TOL = 1e-5
kernel.so: kernel.c
	$(CC) $(CFLAGS) -shared -fPIC -o $@ $<
