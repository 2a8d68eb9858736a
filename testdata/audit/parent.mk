CFLAGS = -O2 -march=native
TOL = 1e-5
kernel.so: kernel.c
	$(CC) $(CFLAGS) -shared -fPIC -o $@ $<
