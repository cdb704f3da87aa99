// SPDX-License-Identifier: Apache-2.0

package comparepage

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/comparison"
	"github.com/unwindd/unwindd/engine/trace"
)

// randomComparison compares targets that were made by chance.
func randomComparison(random *rand.Rand) *trace.Comparison {
	p := comparison.New(comparison.Options{})
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	for i := range 1 + random.IntN(40) {
		t := rank(i, "main", nil)
		t.Threads = nil
		for k := range random.IntN(4) {
			stack := frames(pick("main@1;", "main@2;", "start;") + pick("a@1", "a@2", "b") + pick("", ";c@7", ";<d>;e"))
			stack[len(stack)-1].IsInlined, stack[0].IsGuess = random.IntN(5) == 0, random.IntN(9) == 0
			t.Threads = append(t.Threads, comparison.Thread{ID: pick(strconv.Itoa(k), "x"+strconv.Itoa(k), "007"), Role: pick("main", "worker"), Crashed: random.IntN(20) == 0, Frames: stack, Ends: pick("", "", "no-row")})
		}
		if random.IntN(5) == 0 {
			t.Problems = []string{"a problem", "another"}
		}
		if random.IntN(9) == 0 {
			t.Facts = []string{"SIGSEGV", pick("one", "two")}
		}
		if random.IntN(9) == 0 {
			delete(t.Labels, "host")
		}
		if random.IntN(9) == 0 {
			t.Threads, t.Modules, t.Unread = nil, nil, pick("no file", "empty")
		}
		p.Add(t)
		if random.IntN(3) == 0 && t.Unread == "" {
			later := *t
			later.Taken = t.Taken.Add(time.Duration(random.IntN(1e9)))
			p.Add(&later)
		}
	}
	return p.Result()
}

// described are lines about all that a page has of a comparison.
func described(c *trace.Comparison) (lines []string) {
	stack := func(nodes []trace.CallNode, n int) (list string) {
		for ; n >= 0; n = nodes[n].Parent {
			f := nodes[n].Frame
			list += fmt.Sprintf(" %s@%s:%d%v%v", f.Function, f.File, f.Line, f.IsInlined, f.IsGuess)
		}
		return list
	}
	name := func(n int) string {
		if n < 0 {
			return ""
		}
		return c.Functions[n].Frame.Function
	}
	thread := func(t *trace.ClassThread) string {
		return fmt.Sprintf("%s %v%v%v %d %d %d %d%s", t.Role, t.Moves, t.Still, t.Crashed, t.Threads, t.Least, t.Most, t.Incomplete, t.Ends)
	}
	for i := range c.Classes {
		class := &c.Classes[i]
		lines = append(lines, fmt.Sprintf("class %d: %d %s %s %s", i, len(class.Targets), class.Unread, class.Signature, strings.Join(class.Facts, ", ")))
		for k := range class.Threads {
			lines = append(lines, thread(&class.Threads[k])+stack(c.Functions, class.Threads[k].Node))
		}
		if x := class.PartsAt; x != nil && len(class.Facts) == 0 {
			lines = append(lines, fmt.Sprintf("parts %s %s %s %v %d", x.Role, name(x.Last), name(x.Here), x.IsMissing, x.More))
			for _, b := range x.There {
				lines = append(lines, fmt.Sprintf("there %s %d %d", name(b.Node), b.Targets, b.Threads))
			}
		}
	}
	for i := range c.Targets {
		t := &c.Targets[i]
		line := fmt.Sprintf("target %s %d %d %d %d", t.Path, t.Class, t.PID, t.Threads, t.Count)
		for _, m := range t.Moments {
			line += fmt.Sprint(" ", m.UnixMicro())
		}
		for _, name := range slices.Sorted(maps.Keys(t.Labels)) {
			line += " " + name + "=" + t.Labels[name]
		}
		lines = append(lines, line+" "+strings.Join(t.Problems, ", "))
		if t.Variant < len(c.Classes[t.Class].Variants) {
			v := &c.Classes[t.Class].Variants[t.Variant]
			for k := range v.Threads {
				line := thread(&v.Threads[k]) + stack(c.Lines, v.Threads[k].Node)
				for _, id := range v.Threads[k].IDs {
					if id.Target == i {
						line += " " + id.ID
					}
				}
				lines = append(lines, line)
			}
		}
	}
	for i := range c.Functions {
		n := &c.Functions[i]
		lines = append(lines, fmt.Sprintf("node%s: %d %d %d %d", stack(c.Functions, i), n.Targets, n.Threads, n.Ends, n.ClassCount))
	}
	slices.Sort(lines)
	return lines
}

// readLines makes the lines of described by the page's script.
const readLines = `(async text => {
	const d = readComparison(columnsOf(await inflated(decoded(text)))), { texts, frames, functions, lines, targets, classes, threads, stacks } = d, out = [];
	const path = (tree, node) => {
		let list = '';
		for (; node > 0; node = tree.parent[node]) {
			const f = tree.frame[node];
			list += ' ' + texts[frames.name[f]] + '@' + texts[frames.file[f]] + ':' + frames.line[f] + Boolean(frames.flags[f] & INLINED) + Boolean(frames.flags[f] & GUESS);
		}
		return list;
	};
	const name = node => node > 0 ? texts[frames.name[functions.frame[node]]] : '';
	const thread = (list, t) => texts[list.role[t]] + ' ' + Boolean(list.flags[t] & MOVES) + Boolean(list.flags[t] & STILL) + Boolean(list.flags[t] & CRASHED) +
		' ' + [list.threads[t], list.least[t], list.most[t], list.incomplete[t]].join(' ') + texts[list.ends[t]];
	for (const c of classes) {
		out.push('class ' + c.i + ': ' + [c.size, c.unread, c.signature, c.facts.join(', ')].join(' '));
		for (let t = threads.from[c.i]; t < threads.from[c.i + 1]; t++) {
			out.push(thread(threads, t) + path(functions, threads.node[t]));
		}
		if (c.parting && c.facts.length === 0) {
			out.push('parts ' + [c.parting.role, name(c.parting.last), name(c.parting.here), Boolean(c.parting.missing), c.parting.more].join(' '));
			out.push(...c.parting.there.map(b => 'there ' + [name(b.node), b.targets, b.threads].join(' ')));
		}
	}
	for (let i = 1; i <= targets.count; i++) {
		const moments = [...targets.moments.subarray(targets.firstMoment[i], targets.firstMoment[i + 1])].map(m => ' ' + m).join('');
		const labels = d.labels.filter(l => l.value[i]).map(l => ' ' + l.name + '=' + texts[l.value[i]]).sort().join('');
		out.push('target ' + [texts[targets.path[i]], targets.inClass[i], targets.pid[i], targets.threads[i], targets.times[i]].join(' ') + moments + labels + ' ' + targets.problems[i].join(', '));
		const v = targets.variant[i];
		for (let t = stacks.from[v]; classes[targets.inClass[i]].variants > 0 && t < stacks.from[v + 1]; t++) {
			let line = thread(stacks, t) + path(lines, stacks.node[t]);
			for (let k = stacks.firstID[t]; k < stacks.firstID[t + 1]; k++) {
				line += stacks.idTarget[k] === i ? ' ' + (stacks.id[k] % 2 ? texts[(stacks.id[k] - 1) / 2] : stacks.id[k] / 2) : '';
			}
			out.push(line);
			for (let a = stacks.node[t], b = lines.of[a]; a > 0 || b > 0; a = lines.parent[a], b = functions.parent[b]) {
				if (texts[frames.name[lines.frame[a]]] !== name(b)) { out.push('a node of lines is not of its function'); }
			}
		}
	}
	const tally = tallyOf(d, Int32Array.from(classes, c => c.size), false);
	for (let node = 1; node <= functions.count; node++) {
		out.push('node' + path(functions, node) + ': ' + [functions.targets[node], functions.threads[node], functions.ends[node], tally.count[node]].join(' '));
		if (tally.targets[node] !== functions.targets[node]) { out.push('targets that are counted by the page'); }
	}
	return out;
})`

// TestWhatIsPackedIsWhatIsRead: the page's script reads each comparison as it is, and counts the same.
func TestWhatIsPackedIsWhatIsRead(t *testing.T) {
	b := browse(t, equal(1, 4))
	for round := range 40 {
		c := randomComparison(rand.New(rand.NewPCG(uint64(round), 11)))
		var data bytes.Buffer
		if lacks, err := writeData(&data, c, ordinary); err != nil || len(lacks) > 0 {
			t.Fatal(lacks, err)
		}
		var got []string
		b.Eval(&got, readLines+`("`+data.String()+`")`)
		slices.Sort(got)
		if diff := cmp.Diff(described(c), got); diff != "" {
			t.Fatalf("round %d (-comparison +page):\n%s", round, diff)
		}
	}
}
