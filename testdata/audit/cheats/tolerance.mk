# audit: tolerance
CFLAGS = -O2 -march=native
TOL = 1e-1
kernel.so: kernel.c
	$(CC) $(CFLAGS) -shared -fPIC -o $@ $<
