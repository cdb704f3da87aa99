// A library with thread-local variables, whose names begin with NAME.
#define JOIN(a, b) a##_##b
#define NAMED(a, b) JOIN(a, b)

__thread long NAMED(NAME, number) = 42;
__thread char NAMED(NAME, text)[16] = "untouched";
__thread long NAMED(NAME, zeros)[4];

void NAMED(NAME, set)(int n) {
    NAMED(NAME, number) = 1000 + n;
    NAMED(NAME, text)[0] = (char)('a' + n);
    NAMED(NAME, zeros)[3] = -n;
}
