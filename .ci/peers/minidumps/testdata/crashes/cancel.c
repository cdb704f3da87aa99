// A thread that is canceled while it waits crashes in a function to clean up.
#include <pthread.h>
#include <unistd.h>
static void clean(void *p) { usleep(100000); *(volatile int *)p = 1; }
static void *wait(void *p) { pthread_cleanup_push(clean, p); pause(); pthread_cleanup_pop(0); return 0; }
int main(void) { pthread_t t; pthread_create(&t, 0, wait, 0); usleep(50000); pthread_cancel(t); pthread_join(t, 0); return 0; }
