/* Every variable says in a comment what is printed of it. */
#include <complex.h>
#include <stddef.h>
#include <wchar.h>
#include <uchar.h>

_Bool yes = 1;                              // = true
signed char minus = -3;                     // = -3 '\375'
unsigned char letter = 'a';                 // = 97 'a'
char newline = '\n';                        // = 10 '\n'
char quote = '\'';                          // = 39 '\''
short small = -32768;                       // = -32768
unsigned short large = 65535;               // = 65535
int number = -5;                            // = -5
unsigned count = 4000000000u;               // = 4000000000
long long wide = -9223372036854775807LL - 1; // = -9223372036854775808
unsigned long long widest = ~0ull;          // = 18446744073709551615
__int128 huge = ((__int128)-1 << 100);      // = -1267650600228229401496703205376
unsigned __int128 hugest = ~(unsigned __int128)0; // = 340282366920938463463374607431768211455
float tenth = 0.1f;                         // = 0.1
double third = 1.0 / 3;                     // = 0.3333333333333333
double large_double = 1e300;                // = 1e+300
double infinite = __builtin_inf();          // = inf
double nothing = -__builtin_nan("");        // = -nan
double minus_zero = -0.0;                   // = -0
long double extended = 0.25L;               // = 0.25
long double extended_third = 1.0L / 3;      // = 0.33333333333333333334
__float128 quad = 1.5;                      // = 1.5
double complex z = 1.5 - 2.5 * I;           // = 1.5 + -2.5i
wchar_t w = L'\u00e9';                      // = 233 L'é'
char16_t c16 = u'\u20ac';                   // = 8364 u'€'
char32_t c32 = U'\U0001f600';               // = 128512 U'😀'

enum color { RED, GREEN = 5, BLUE } color = GREEN; // = GREEN
enum color unknown = (enum color)4;         // = 4
enum flags { A = 1, B = 2, C = 8 } both = A | C; // = (A | C)
enum flags odd = (enum flags)(B | 64);      // = (B | unknown: 0x40)
enum flags none = (enum flags)0;            // = 0
enum negative { LOW = -7, HIGH = 7 } low = LOW; // = LOW

char text[] = "say \"hi\"\n";               // = "say \"hi\"\n"
char padded[8] = "ab";                      // = "ab"
char inside[8] = "a\0b";                    // = "a\000b"
char octal[4] = "\0011";                    // = "\001\061"
char full[3] = {'x', 'y', 'z'};             // = "xyz"
wchar_t wide_text[] = L"h\u00e9";           // = L"hé"
int list[4] = {1, 2, 3, 4};                 // = {1, 2, 3, 4}
int zeros[20];                              // = {0 <repeats 20 times>}
int mostly[22] = {[21] = 7};                // = {0 <repeats 21 times>, 7}
int matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};  // = {{1, 2, 3}, {4, 5, 6}}
int empty[0];                               // = {}
typedef int vector __attribute__((vector_size(16)));
vector four = {1, 2, 3, 4};                 // = {1, 2, 3, 4}

struct point { int x, y; } point = {3, -4}; // = {x = 3, y = -4}
struct nested { struct point a; struct { int inner; }; union { int i; float f; } u; } nested = {{1, 2}, {3}, {1065353216}}; // = {a = {x = 1, y = 2}, {inner = 3}, u = {i = 1065353216, f = 1}}
struct bits { int a : 3; unsigned b : 5; long long c : 40; _Bool d : 1; enum color e : 4; } bits = {-2, 17, -1000000000, 1, BLUE}; // = {a = -2, b = 17, c = -1000000000, d = true, e = BLUE}
struct packed { char a; int b; } __attribute__((packed)) packed = {'a', 2}; // = {a = 97 'a', b = 2}
struct flexible { int n; int data[]; } flexible = {1, {2}}; // = {n = 1, data = {}}
struct list_node { int value; struct list_node *next; } last = {2, NULL}; // = {value = 2, next = 0x0}
struct nothing_in {} nothing_in;            // = {}
const volatile int both_qualified = 6;      // = 6
__attribute__((used)) static int hidden = 9; // = 9
int *null_pointer = NULL;                   // = 0x0
struct opaque *opaque = NULL;               // = 0x0

int main(void) { return hidden; }
