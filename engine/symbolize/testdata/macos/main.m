/* SPDX-License-Identifier: Apache-2.0 */
int work(int);
__attribute__((objc_root_class)) @interface Account { int sum; }
+ (int)open:(int)first with:(int)rate;
- (int)add:(int)amount;
@end
static inline __attribute__((always_inline)) int doubled(int x) { return x * 2 + 1; }
@implementation Account
+ (int)open:(int)first with:(int)rate { return work(first) * doubled(rate); }
- (int)add:(int)amount { return sum + doubled(amount); }
@end
static __attribute__((noinline)) int run(int (^block)(int)) { return block(4) + 1; }
int main(int count, char **words) {
	return run(^(int x) { return x + count; }) + [Account open:count with:3];
}
