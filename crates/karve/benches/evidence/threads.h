/* Runs the same function on two threads, and waits for both. */
#include <pthread.h>
static void both(void *(*run)(void *), void *first, void *second) {
    pthread_t other;
    if (pthread_create(&other, 0, run, second)) exit(2);
    run(first);
    pthread_join(other, 0);
}
