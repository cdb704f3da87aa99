/* Epilogues that unwind information of version 2 names: see version2_test.go. */
int sink; 
__attribute__((noinline)) void use(void *p) { sink += *(volatile char *)p; }
__attribute__((noinline)) int leaf(int a) { return a * sink; }
int f(int a,int b,int c){ char x[200]; use(x); if(a) {int r=leaf(a)+x[b]; use(x); return r;} for(int i=0;i<c;i++) a+=leaf(i)*b; use(x); return a; }
int g(int a){ int b=leaf(a); return leaf(b); }
int h(int a){ char *x=__builtin_alloca(a); use(x); return x[2]; }
double d(double a,double b,double c){ double x=a*b,y=b*c,z=a*c; use(&sink); return x+y+z;}
int main(int n, char **v) { return f(n,n,n)+g(n)+h(n)+(int)d(n,n,n); }
