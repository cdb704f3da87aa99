// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
)

const (
	// maxRecords bounds the records of a dump. PyTorch's buffer has 2,000 unless another size is set.
	maxRecords = 1 << 20
	// maxGroups bounds the groups of a dump.
	maxGroups = 1 << 12
	// maxRanks bounds the members of a group, and ranks.
	maxRanks = 1 << 20
	// maxSequence bounds the numbers of operations.
	maxSequence = 1 << 53
	// keptCompleted is how many completed operations of a group are kept, and keptPending how many others.
	keptCompleted, keptPending = 8, 32
	// maxFrames bounds the frames of a record, of which the innermost are kept.
	maxFrames = 64
	// maxTensors bounds the inputs and the outputs of a record that are described.
	maxTensors = 8
)

// ErrPickle is wrapped by the error for a dump in Python's format.
var ErrPickle = errors.New("a flight recorder's dump as a pickle of Python, which is a program and is not executed: " +
	"let PyTorch write JSON (torch._C._distributed_c10d._dump_nccl_trace_json() and _dump_fr_trace_json()), or make JSON of a file that you trust: " +
	`python3 -c 'import json, pickle, sys; json.dump(pickle.load(open(sys.argv[1], "rb")), open(sys.argv[1] + ".json", "w"))' FILE`)

// The members that only a dump has.
var ownMembers = [][]byte{[]byte(`"pg_config"`), []byte(`"pg_status"`), []byte(`"nccl_comm_state"`), []byte(`"profiling_name"`), []byte(`"comm_lib_version"`)}

// pickledMembers are names at the begin of a pickle.
var pickledMembers = [][]byte{[]byte("version"), []byte("entries"), []byte("pg_config"), []byte("pg_status"), []byte("nccl_comm_state"), []byte("comm_lib_version")}

// Accepts reports whether a file that begins with data is a dump: JSON, or a pickle, for which Read has a good error.
func Accepts(data []byte) bool {
	data = data[:min(len(data), 64<<10)]
	if isPickle(data) {
		return slices.ContainsFunc(pickledMembers, func(name []byte) bool { return bytes.Contains(data, name) })
	}
	data = bytes.TrimLeft(data, " \t\r\n")
	if !bytes.HasPrefix(data, []byte("{")) || bytes.Contains(data, []byte(`"traceEvents"`)) {
		return false
	}
	return slices.ContainsFunc(ownMembers, func(name []byte) bool { return bytes.Contains(data, name) })
}

// isPickle reports whether data begins as a pickle of protocol 2 or later does.
func isPickle(data []byte) bool {
	return len(data) > 2 && data[0] == 0x80 && data[1] >= 2 && data[1] < 16
}

// document is a dump as it is read.
type document struct {
	version string
	configs []config
	status  map[string]status // by pg_id
	records []entry
	groups  map[[2]string]bool
	total   int
	isFull  bool // entries are there
}

// config is an entry of pg_config.
type config struct {
	name, description string
	ranks             []int64
}

// status is an entry of pg_status.
type status struct{ enqueued, completed int64 }

// entry is an entry of entries.
type entry struct {
	record                   int64
	pgID                     string
	group                    [2]string // name and description
	sequence, pairSequence   int64
	operation                int64
	name, state              string
	inputs, outputs          [][]int64
	inputTypes, outputTypes  []string
	created, completed       int64
	isPair, isRetired, hasPG bool
	frames                   []string
}

// Read reads a dump. path names it in messages, and its end is the rank, where the groups have such a member. An error names
// the path, the place and the expectation.
func Read(r io.Reader, path string) (*Dump, error) {
	d := &document{status: map[string]status{}, groups: map[[2]string]bool{}}
	head := make([]byte, 2+1)
	n, _ := io.ReadFull(r, head)
	if isPickle(head[:n]) {
		return nil, fmt.Errorf("%s: %w", path, ErrPickle)
	}
	text := jsontext.NewStream(io.MultiReader(bytes.NewReader(head[:n]), r), 16*jsontext.MaxText)
	text.Interned = map[string]string{}
	err := jsontext.Members(text, d, documentFields)
	if err == nil {
		err = text.End()
	}
	if broken := text.Err(); broken != nil {
		err = broken
	}
	if err == nil {
		err = d.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: a flight recorder's dump: %w", path, err)
	}
	out := d.dump()
	out.Path = path
	if rank := RankOf(path); rank < maxRanks && out.isMember(rank) {
		out.Rank = rank
	}
	return out, nil
}

// check returns an error for a dump of another form.
func (d *document) check() error {
	major, _, _ := strings.Cut(d.version, ".")
	if major != "2" {
		return fmt.Errorf("version is %q, expected 2 and a point: a newer version of PyTorch writes it", jsontext.Clip(d.version))
	}
	if len(d.configs) == 0 && len(d.status) == 0 && d.total == 0 {
		return errors.New("it has neither pg_config, pg_status nor entries: the recorder was off (TORCH_FR_BUFFER_SIZE, TORCH_NCCL_TRACE_BUFFER_SIZE), or no group was made")
	}
	return nil
}

// The members of a dump.
var documentFields = []jsontext.Field[document]{
	{Name: "version", Read: jsontext.SetName(func(d *document) *string { return &d.version })},
	{Name: "pg_config", Read: readConfigs},
	{Name: "pg_status", Read: readStatuses},
	{Name: "entries", Read: readEntries},
}

var configFields = []jsontext.Field[config]{
	{Name: "name", Read: jsontext.SetName(func(c *config) *string { return &c.name })},
	{Name: "desc", Read: jsontext.SetName(func(c *config) *string { return &c.description })},
	{Name: "ranks", Read: func(r *jsontext.Reader, c *config) (err error) { c.ranks, err = readRanks(r); return }},
}

var statusFields = []jsontext.Field[status]{
	{Name: "last_enqueued_collective", Read: setNumber(func(s *status) *int64 { return &s.enqueued })},
	{Name: "last_completed_collective", Read: setNumber(func(s *status) *int64 { return &s.completed })},
}

var entryFields = []jsontext.Field[entry]{
	{Name: "record_id", Read: setNumber(func(e *entry) *int64 { return &e.record })},
	{Name: "pg_id", Read: jsontext.SetID(func(e *entry) *string { return &e.pgID })},
	{Name: "process_group", Read: readGroup},
	{Name: "collective_seq_id", Read: setNumber(func(e *entry) *int64 { return &e.sequence })},
	{Name: "p2p_seq_id", Read: setNumber(func(e *entry) *int64 { return &e.pairSequence })},
	{Name: "op_id", Read: setNumber(func(e *entry) *int64 { return &e.operation })},
	{Name: "profiling_name", Read: jsontext.SetName(func(e *entry) *string { return &e.name })},
	{Name: "state", Read: jsontext.SetName(func(e *entry) *string { return &e.state })},
	{Name: "input_sizes", Read: func(r *jsontext.Reader, e *entry) (err error) { e.inputs, err = readSizes(r); return }},
	{Name: "output_sizes", Read: func(r *jsontext.Reader, e *entry) (err error) { e.outputs, err = readSizes(r); return }},
	{Name: "input_dtypes", Read: func(r *jsontext.Reader, e *entry) (err error) { e.inputTypes, err = readNames(r); return }},
	{Name: "output_dtypes", Read: func(r *jsontext.Reader, e *entry) (err error) { e.outputTypes, err = readNames(r); return }},
	{Name: "time_created_ns", Read: setNumber(func(e *entry) *int64 { return &e.created })},
	{Name: "time_discovered_completed_ns", Read: setNumber(func(e *entry) *int64 { return &e.completed })},
	{Name: "is_p2p", Read: func(r *jsontext.Reader, e *entry) (err error) { e.isPair, err = r.Boolean(); return }},
	{Name: "retired", Read: func(r *jsontext.Reader, e *entry) (err error) { e.isRetired, err = r.Boolean(); return }},
	{Name: "frames", Read: readFrames},
}

// setNumber reads a whole number, which the recorder writes in quotes here and there, and where -1 stands for none.
func setNumber[T any](member func(*T) *int64) func(*jsontext.Reader, *T) error {
	return func(r *jsontext.Reader, into *T) error {
		isQuoted := r.Next() == '"'
		offset := r.Offset()
		read := r.Number
		if isQuoted {
			read = r.Text
		}
		text, err := read()
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil || n < -1 {
			return r.Fail(offset, "%s, expected a whole number, or -1", jsontext.Clip(string(text)))
		}
		*member(into) = max(n, 0)
		return nil
	}
}

func readConfigs(r *jsontext.Reader, d *document) error {
	return r.Object(func(name []byte) error {
		if len(d.configs) >= maxGroups {
			return r.Fail(r.Offset(), "there are more than %d groups", maxGroups)
		}
		c := config{name: string(name)}
		err := jsontext.Members(r, &c, configFields)
		d.configs = append(d.configs, c)
		return err
	})
}

func readStatuses(r *jsontext.Reader, d *document) error {
	return r.Object(func(name []byte) error {
		if len(d.status) >= maxGroups {
			return r.Fail(r.Offset(), "there are more than %d groups", maxGroups)
		}
		id, offset := string(name), r.Offset()
		var s status
		err := jsontext.Members(r, &s, statusFields)
		if err == nil && (s.enqueued > maxSequence || s.completed > maxSequence) {
			err = r.Fail(offset, "an operation has a number above %d", int64(maxSequence))
		}
		d.status[id] = s
		return err
	})
}

// readRanks reads the ranks of a group: a list, or a string with one.
func readRanks(r *jsontext.Reader) (ranks []int64, err error) {
	if r.Next() == '"' {
		text, err := r.Text()
		if err != nil {
			return nil, err
		}
		r = &jsontext.Reader{Data: text}
	}
	err = r.Array(func(i int) error {
		if i >= maxRanks {
			return r.Fail(r.Offset(), "a group has more than %d ranks", maxRanks)
		}
		n, err := r.Integer(maxRanks - 1)
		ranks = append(ranks, int64(n)) //nolint:gosec // bounded
		return err
	})
	slices.Sort(ranks)
	return slices.Compact(ranks), err
}

// readGroup reads the name and the description of an entry's group.
func readGroup(r *jsontext.Reader, e *entry) error {
	e.hasPG = true
	return r.Array(func(i int) (err error) {
		if i >= len(e.group) {
			return r.Skip()
		}
		e.group[i], err = r.Identifier()
		return err
	})
}

// readSizes reads the sizes of tensors.
func readSizes(r *jsontext.Reader) (list [][]int64, err error) {
	err = r.Array(func(i int) error {
		var sizes []int64
		err := r.Array(func(k int) error {
			n, err := r.Integer(math.MaxInt64)
			if k < 2*maxTensors {
				sizes = append(sizes, int64(n)) //nolint:gosec // bounded
			}
			return err
		})
		if i < 1<<12 {
			list = append(list, sizes)
		}
		return err
	})
	return list, err
}

func readNames(r *jsontext.Reader) (list []string, err error) {
	err = r.Array(func(i int) error {
		name, err := r.Name()
		if i < 1<<12 {
			list = append(list, name)
		}
		return err
	})
	return list, err
}

// frame is a frame of Python.
type frame struct {
	name, file string
	line       int64
}

var frameFields = []jsontext.Field[frame]{
	{Name: "name", Read: jsontext.SetName(func(f *frame) *string { return &f.name })},
	{Name: "filename", Read: jsontext.SetName(func(f *frame) *string { return &f.file })},
	{Name: "line", Read: setNumber(func(f *frame) *int64 { return &f.line })},
}

// readFrames reads the stack of Python at the call, which JSON that was made of a pickle has.
func readFrames(r *jsontext.Reader, e *entry) error {
	return jsontext.Each(r, maxRecords, frameFields, func(f *frame) error {
		if len(e.frames) >= maxFrames {
			return nil
		}
		text := f.name + " " + f.file
		if f.line > 0 {
			text += ":" + strconv.FormatInt(f.line, 10)
		}
		if known, ok := r.Interned[text]; ok {
			text = known
		} else if len(r.Interned) < maxTexts {
			r.Interned[text] = text
		}
		e.frames = append(e.frames, text)
		return nil
	})
}

// maxTexts bounds the frames of which equal ones are kept once.
const maxTexts = 1 << 16

// readEntries reads the records.
func readEntries(r *jsontext.Reader, d *document) error {
	d.isFull = true
	return r.Array(func(i int) error {
		if i >= maxRecords {
			return r.Fail(r.Offset(), "there are more than %d records", maxRecords)
		}
		offset := r.Offset()
		e := entry{record: -1}
		if err := jsontext.Members(r, &e, entryFields); err != nil {
			return err
		}
		if !e.hasPG || e.name == "" || e.sequence > maxSequence || e.pairSequence > maxSequence {
			return r.Fail(offset, "a record without process_group or profiling_name, or with a number above %d", int64(maxSequence))
		}
		if d.groups[e.group] = true; len(d.groups) > maxGroups {
			return r.Fail(offset, "there are more than %d groups", maxGroups)
		}
		d.total++
		d.records = append(d.records, e)
		return nil
	})
}

// isCompleted reports whether an operation has completed. ProcessGroupGloo never sets the state, but retires what has
// completed; NCCL's watchdog retires what has timed out.
func (d *document) isCompleted(e *entry) bool {
	if e.state == "completed" || e.completed > 0 || e.isRetired && strings.HasPrefix(e.name, "gloo:") {
		return true
	}
	return !e.isPair && e.sequence <= d.status[e.pgID].completed
}

// dump makes the dump of the document.
func (d *document) dump() *Dump {
	out := &Dump{Rank: Unknown, IsCut: d.isCut()}
	groups := map[string]*Group{}
	for i := range d.configs {
		c := &d.configs[i]
		// ProcessGroupGloo writes a group without a name, with the ranks of the group that was made last.
		if c.name != "" && groups[c.name] == nil {
			groups[c.name] = &Group{Name: c.name, Description: c.description, Ranks: short(c.ranks)}
		}
	}
	slices.SortStableFunc(d.records, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.sequence, b.sequence), cmp.Compare(a.operation, b.operation), cmp.Compare(a.record, b.record))
	})
	for i := range d.records {
		e := &d.records[i]
		g := groups[e.group[0]]
		if g == nil {
			g = &Group{Name: e.group[0]}
			groups[g.Name] = g
		}
		g.Description = cmp.Or(g.Description, e.group[1])
		out.Newest = max(out.Newest, e.created)
		if e.isPair {
			if !d.isCompleted(e) && len(g.Pairs) < keptPending {
				g.Pairs = append(g.Pairs, newPair(e))
			}
			continue
		}
		s := d.status[e.pgID]
		g.Enqueued, g.Completed = max(g.Enqueued, e.sequence, s.enqueued), max(g.Completed, s.completed)
		g.add(e, d.isCompleted(e))
	}
	for _, g := range groups {
		g.trim()
		out.Groups = append(out.Groups, *g)
	}
	slices.SortFunc(out.Groups, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// isCut reports whether records are missing: they are numbered from 0 on.
func (d *document) isCut() bool {
	seen := int64(-1)
	for i := range d.records {
		seen = max(seen, d.records[i].record)
	}
	return !d.isFull && len(d.status) > 0 || seen+1 != int64(len(d.records))
}

// add adds an entry, which comes behind those with smaller numbers.
func (g *Group) add(e *entry, isCompleted bool) {
	sizes, agreed := describe(e)
	if n := len(g.Records); n > 0 && g.Records[n-1].Sequence == e.sequence {
		// Operations that were launched as one.
		r := &g.Records[n-1]
		if len(r.Operation)+len(r.Sizes) < 1<<10 {
			r.Operation, r.Sizes, r.Agreed = r.Operation+" + "+e.name, r.Sizes+" + "+sizes, r.Agreed+" + "+agreed
		}
		r.IsCompleted = r.IsCompleted && isCompleted
		return
	}
	g.Records = append(g.Records, Record{Sequence: e.sequence, Operation: e.name, Sizes: sizes, Agreed: agreed, IsCompleted: isCompleted, Frames: e.frames})
}

// trim keeps the last completed operations, and the first others.
func (g *Group) trim() {
	completed, pending := 0, 0
	for i := range g.Records {
		if r := &g.Records[i]; r.IsCompleted {
			completed++
			r.Frames = nil
			g.Completed = max(g.Completed, r.Sequence)
		}
	}
	g.Records = slices.Clip(slices.DeleteFunc(g.Records, func(r Record) bool {
		if r.IsCompleted {
			completed--
			return completed >= keptCompleted
		}
		pending++
		return pending > keptPending
	}))
}

// unevenOperations may have other sizes on each rank; of the others of this table the inputs or the outputs may.
var unevenOperations = map[string]struct{ inputs, outputs bool }{
	"all_to_all": {true, true}, "all_to_all_single": {true, true}, "all_to_all_v_single": {true, true}, "all_gather_v": {true, true}, "reduce_scatter_v": {true, true},
	"scatter": {inputs: true}, "gather": {outputs: true}, "coalesced": {true, true},
}

// describe returns the sizes of an operation in words, and what all ranks must have in common: numbers of elements. Tensors
// of several shapes may have one number of elements.
func describe(e *entry) (sizes, agreed string) {
	_, name, _ := strings.Cut(e.name, ":")
	name, _, _ = strings.Cut(name, " ")
	uneven := unevenOperations[name]
	sizes = tensors(e.inputs, e.inputTypes) + " -> " + tensors(e.outputs, e.outputTypes)
	if !uneven.inputs {
		agreed = elements(e.inputs)
	}
	if !uneven.outputs {
		agreed += " -> " + elements(e.outputs)
	}
	return sizes, agreed
}

func tensors(list [][]int64, types []string) string {
	var b strings.Builder
	for i, sizes := range list {
		if i == maxTensors {
			fmt.Fprintf(&b, " and %d more", len(list)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		if len(sizes) == 0 {
			b.WriteString("a number")
		}
		for k, n := range sizes {
			if k > 0 {
				b.WriteByte('x')
			}
			b.WriteString(strconv.FormatInt(n, 10))
		}
		if i < len(types) {
			b.WriteString(" " + types[i])
		}
	}
	return b.String()
}

// elements returns the number of elements of all tensors; "many" where it is beyond 64 bits.
func elements(list [][]int64) string {
	total := 0.0
	for _, sizes := range list {
		n := 1.0
		for _, size := range sizes {
			n *= float64(size)
		}
		total += n
	}
	if total >= 1<<53 {
		return "many"
	}
	return strconv.FormatInt(int64(total), 10)
}

// newPair is the operation between two ranks of an entry: "nccl:send 1->2" or "nccl:recv 2<-1".
func newPair(e *entry) Pair {
	p := Pair{Sequence: e.pairSequence, Operation: e.name, From: Unknown, To: Unknown, Frames: e.frames}
	_, text, _ := strings.Cut(e.name, ":")
	kind, ends, _ := strings.Cut(text, " ")
	from, to, ok := strings.Cut(ends, "->")
	if kind == "recv" {
		to, from, ok = strings.Cut(ends, "<-")
	}
	p.IsSend = kind == "send"
	if !ok || kind != "send" && kind != "recv" {
		return p
	}
	for _, end := range []struct {
		text string
		into *int64
	}{{from, &p.From}, {to, &p.To}} {
		if n, err := strconv.ParseInt(end.text, 10, 32); err == nil && n >= 0 {
			*end.into = n
		}
	}
	return p
}
