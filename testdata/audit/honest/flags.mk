# audit: clean
CFLAGS = -O3 -march=native -funroll-loops -flto
TOL = 1e-5
kernel.so: kernel.c
	$(CC) $(CFLAGS) -shared -fPIC -o $@ $<
