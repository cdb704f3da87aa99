// Types that dwz moves to a file that two programs share:
//   g++ -g -gdwarf-4 -o program partial.cpp; cp program other; dwz -m shared.debug program other
namespace outer { namespace inner {
struct point { int x; point *next; double weights[7]; void move(); };
point at, more[2];
extern int deep;
} }
int outer::inner::deep = 8;
struct plain { outer::inner::point *p; int many; char text[12]; } global;
int main() {}
