// A library whose file is deleted while it is loaded.
static const char *const relocated[] = {"a", "b"};  // RELRO
const char *library_text(int i) { return relocated[i & 1]; }
