// SPDX-License-Identifier: Apache-2.0

package gcn

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator writes programs in C that are kernels on the device and the same
// functions on the host: call graphs, recursion that an argument bounds, indirect
// calls through a table, loops and branches on values that differ between lanes,
// early returns, arrays in private memory, values that live across calls.
type generator struct {
	random    *rand.Rand
	text      strings.Builder
	functions int
	many      int // the function with so many arguments that some are on the stack; -1
	depth     int // of the statement
	loops     int
	locals    []string // that may be read
	arrays    []string // of 8 numbers
	self      int
	calls     int // left in this function
	names     int
}

const prelude = `
#ifdef HOST
#define GLOBAL
#define KERNEL
#define ID lane
#define CLOBBER(...)
static int lane;
#else
#define GLOBAL __attribute__((address_space(1)))
#define KERNEL __attribute__((amdgpu_kernel))
#define ID ((int)__builtin_amdgcn_workitem_id_x())
#define CLOBBER(...) __asm__ volatile("" ::: __VA_ARGS__)
#endif
#define NOINLINE __attribute__((noinline))
typedef unsigned int u32;
typedef u32 (*function)(u32, u32, const GLOBAL u32 *, int);
`

// hostMain runs the kernel on the host: arguments are the number of work-items,
// n, and the words at p.
const hostMain = `
#ifdef HOST
int printf(const char *, ...);
unsigned long strtoul(const char *, char **, int);
int main(int argc, char **argv) {
  static u32 p[64], out[64];
  int items = strtoul(argv[1], 0, 10), n = strtoul(argv[2], 0, 10);
  for (int i = 0; i < 64; i++) p[i] = strtoul(argv[3 + i], 0, 10);
  for (lane = 0; lane < items; lane++) kern(out, p, n);
  for (int i = 0; i < items; i++) printf("%u\n", out[i]);
  return 0;
}
#endif
`

// generate returns the program of a seed. accumulators is set where the
// processor has accumulation registers.
func generate(seed uint64, accumulators bool) string {
	g := &generator{random: rand.New(rand.NewPCG(seed, 0x6763))}
	g.text.WriteString(prelude)
	g.functions = 2 + g.random.IntN(6)
	g.many = -1
	if g.chance(3) {
		g.many = g.random.IntN(g.functions)
	}
	linkage := make([]string, g.functions)
	for i := range g.functions {
		if g.chance(3) {
			linkage[i] = "static "
		}
		fmt.Fprintf(&g.text, "%s;\n", g.head(i, linkage[i]))
	}
	g.text.WriteString("static const function table[4] = {")
	for range 4 {
		fmt.Fprintf(&g.text, "f%d, ", g.plain())
	}
	g.text.WriteString("};\n")
	for i := range g.functions {
		g.function(i, linkage[i], accumulators)
	}
	g.kernel()
	g.text.WriteString(hostMain)
	return g.text.String()
}

func (g *generator) chance(n int) bool { return g.random.IntN(n) == 0 }

// plain returns a function with the usual arguments.
func (g *generator) plain() int {
	for {
		if i := g.random.IntN(g.functions); i != g.many {
			return i
		}
	}
}

const manyArguments = 44

func (g *generator) head(i int, linkage string) string {
	if i == g.many {
		var b strings.Builder
		fmt.Fprintf(&b, "NOINLINE %su32 f%d(u32 a, u32 b, const GLOBAL u32 *p, int d", linkage, i)
		for k := range manyArguments {
			fmt.Fprintf(&b, ", u32 m%d", k)
		}
		return b.String() + ")"
	}
	return fmt.Sprintf("NOINLINE %su32 f%d(u32 a, u32 b, const GLOBAL u32 *p, int d)", linkage, i)
}

func (g *generator) line(format string, args ...any) {
	g.text.WriteString(strings.Repeat("  ", g.depth+1))
	fmt.Fprintf(&g.text, format+"\n", args...)
}

func (g *generator) function(i int, linkage string, accumulators bool) {
	g.self, g.depth, g.loops, g.calls = i, 0, 0, 1+g.random.IntN(3)
	g.locals, g.arrays = []string{"a", "b", "(u32)d"}, nil
	fmt.Fprintf(&g.text, "%s {\n", g.head(i, linkage))
	if i == g.many {
		for k := 0; k < manyArguments; k += 1 + g.random.IntN(4) {
			g.locals = append(g.locals, fmt.Sprintf("m%d", k))
		}
	}
	if g.chance(4) { // as if a callee-saved register were needed
		for range 1 + g.random.IntN(4) {
			n := 40 + g.random.IntN(24)
			switch g.random.IntN(3) {
			case 0:
				g.line(`CLOBBER("s%d");`, 34+g.random.IntN(40))
			case 1:
				g.line(`CLOBBER("v%d");`, n)
			case 2:
				if accumulators {
					g.line(`CLOBBER("a%d");`, 28+g.random.IntN(12))
				}
			}
		}
	}
	if g.chance(3) {
		align := ""
		if g.chance(3) {
			align = fmt.Sprintf(" __attribute__((aligned(%d)))", 32<<g.random.IntN(2))
		}
		g.line("u32 r%d[8]%s;", i, align)
		g.line("for (int i = 0; i < 8; i++) r%d[i] = %s;", i, g.expression(1))
		g.arrays = append(g.arrays, fmt.Sprintf("r%d", i))
	}
	for range 1 + g.random.IntN(3) {
		g.local()
	}
	for range 2 + g.random.IntN(5) {
		g.statement()
	}
	if g.calls > 0 && g.chance(3) && i != g.many { // it may become a jump
		g.line("if (d > 0) return f%d(%s, %s, p, d - 1);", g.plain(), g.expression(1), g.expression(1))
	}
	g.line("return %s;", g.expression(3))
	g.text.WriteString("}\n")
}

func (g *generator) local() {
	g.names++
	name := fmt.Sprintf("x%d", g.names)
	g.line("u32 %s = %s;", name, g.expression(2))
	g.locals = append(g.locals, name)
}

func (g *generator) any() string { return g.locals[g.random.IntN(len(g.locals))] }

// variable returns a local that can be written.
func (g *generator) variable() string {
	for range 20 {
		if v := g.any(); v != "(u32)d" {
			return v
		}
	}
	return "a"
}

func (g *generator) expression(depth int) string {
	if depth == 0 {
		switch g.random.IntN(5) {
		case 0:
			return fmt.Sprint(g.random.IntN(1000))
		case 1:
			if len(g.arrays) > 0 {
				return fmt.Sprintf("%s[%s & 7]", g.arrays[g.random.IntN(len(g.arrays))], g.any())
			}
		case 2:
			return fmt.Sprintf("p[%s & 63]", g.any())
		}
		return g.any()
	}
	x, y := g.expression(depth-1), g.expression(g.random.IntN(depth))
	switch g.random.IntN(10) {
	case 0, 1:
		return "(" + x + " + " + y + ")"
	case 2:
		return "(" + x + " - " + y + ")"
	case 3:
		return "(" + x + " * " + y + ")"
	case 4:
		return "(" + x + " ^ " + y + ")"
	case 5:
		return "(" + x + " & " + y + ")"
	case 6:
		return fmt.Sprintf("(%s >> %d)", x, g.random.IntN(31))
	case 7:
		return fmt.Sprintf("(%s << %d)", x, g.random.IntN(9))
	case 8:
		return fmt.Sprintf("(%s < %s ? %s : %s)", x, y, g.any(), g.any())
	}
	return fmt.Sprintf("(u32)((unsigned long long)%s * %s >> %d)", x, y, 5+g.random.IntN(40))
}

// condition returns a condition in which lanes may differ, or all agree.
func (g *generator) condition() string {
	switch g.random.IntN(4) {
	case 0:
		return fmt.Sprintf("d > %d", g.random.IntN(3))
	case 1:
		return fmt.Sprintf("(%s & %d) == %d", g.expression(1), 3, g.random.IntN(4))
	case 2:
		return fmt.Sprintf("(%s & 1)", g.expression(1))
	}
	return fmt.Sprintf("%s < %s", g.expression(1), g.expression(1))
}

func (g *generator) block(n int) {
	locals := len(g.locals)
	g.depth++
	for range 1 + g.random.IntN(n) {
		g.statement()
	}
	g.depth--
	g.locals = g.locals[:locals]
}

func (g *generator) statement() {
	kind := g.random.IntN(12)
	if g.depth > 3 {
		kind = 8 + g.random.IntN(4)
	}
	switch kind {
	case 0, 1:
		g.line("if (%s) {", g.condition())
		g.block(3)
		if g.chance(2) {
			g.line("} else {")
			g.block(3)
		}
		g.line("}")
	case 2:
		if g.loops == 2 {
			g.local()
			return
		}
		g.loops++
		g.names++
		calls := g.calls
		g.calls = min(calls, 1)
		g.line("for (u32 i%d = 0; i%d < (%s & 3); i%d++) {", g.names, g.names, g.any(), g.names)
		g.block(2)
		g.line("}")
		g.calls = min(calls-1, g.calls)
	case 3:
		g.line("if (%s) return %s;", g.condition(), g.expression(1))
	case 4, 5, 6, 7:
		g.call()
	case 8:
		if len(g.arrays) > 0 {
			g.line("%s[%s & 7] = %s;", g.arrays[0], g.any(), g.expression(2))
			return
		}
		g.local()
	case 9:
		g.local()
	default:
		g.line("%s = %s;", g.variable(), g.expression(2))
	}
}

// call calls a function where the depth allows it: directly, or through the table.
func (g *generator) call() {
	if g.calls <= 0 {
		g.local()
		return
	}
	g.calls--
	callee := fmt.Sprintf("f%d", g.random.IntN(g.functions))
	more := ""
	switch {
	case g.chance(4):
		callee = fmt.Sprintf("table[%s & 3]", g.any())
	case callee == fmt.Sprintf("f%d", g.many):
		for k := range manyArguments {
			more += ", " + g.locals[k%len(g.locals)]
		}
	}
	earlier := 0
	if g.chance(3) { // values that live across the call
		earlier = 2 + g.random.IntN(24)
		for k := range earlier {
			g.line("u32 k%d_%d = p[(%s + %d) & 63];", g.names, k, g.any(), k)
		}
	}
	name := g.names
	g.names++
	g.line("if (d > 0) %s += %s(%s, %s, p, d - 1%s);", g.variable(), callee, g.expression(1), g.expression(1), more)
	for k := range earlier {
		g.line("%s ^= k%d_%d * %d;", g.variable(), name, k, 2*k+3)
	}
}

func (g *generator) kernel() {
	g.depth, g.locals, g.arrays = 0, []string{"x", "y"}, nil
	g.text.WriteString("KERNEL void kern(GLOBAL u32 *out, const GLOBAL u32 *p, int n) {\n")
	g.line("u32 x = p[ID & 63], y = ID;")
	g.line("n = 1 + (n & 1);")
	g.line("if (%s) x += f%d(x, y, p, n);", g.conditionOf("x", "y"), g.plain())
	g.line("else y ^= f%d(y, x, p, n);", g.plain())
	if g.chance(2) {
		g.line("for (u32 i = 0; i < (y & 3); i++) x += f%d(x, i, p, 1);", g.plain())
	}
	g.line("out[ID] = x * 31 + table[y & 3](x, y, p, n);")
	g.text.WriteString("}\n")
}

func (g *generator) conditionOf(x, y string) string {
	return [...]string{x + " & 1", y + " < 20", x + " > 50", "n > 1"}[g.random.IntN(4)]
}
