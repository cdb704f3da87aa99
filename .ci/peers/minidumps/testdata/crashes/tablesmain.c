long first(long *p, long n);
int main(int argc, char **argv) { (void)argv; return (int)first((long *)8, argc) + 1; }
