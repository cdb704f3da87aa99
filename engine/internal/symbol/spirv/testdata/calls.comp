#version 450
layout(local_size_x = 64) in;
layout(set=0,binding=0) buffer B { int data[]; } buf;
int twice(int x) {
  int loc = x << 1;
  return loc;
}
void main() {
  int a = twice(3);
  if (a > 2) {
    int deep = a - 1;
    buf.data[0] = deep;
  }
  buf.data[1] = a;
}
