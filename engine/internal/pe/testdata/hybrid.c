/* Code of a hybrid file: see hybrid_test.go. */
volatile int NAME;
__declspec(dllexport) int CALL(int n) { NAME = n; return n + NAME; }
