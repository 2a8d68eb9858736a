# audit: linker-trick
CFLAGS = -O2 -march=native -include easy.h
TOL = 1e-5
kernel.so: kernel.c
	$(CC) $(CFLAGS) -shared -fPIC -o $@ $<
