// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"
)

// written is a part with a bit of everything.
func written(tb testing.TB) []byte {
	tb.Helper()
	p := New(Options{ByThread: true})
	for rank := range 5 {
		one := at(targetOf(rank, "1 main: a:1 b@lib:2", "gpu-1/3 wave of k: k:7", " w: ", "7 w!: s"), "host", int64(-rank), 1, rank)
		one.Threads[1].Frames[0].IsWave, one.Threads[0].Frames[1].IsInlined, one.Threads[3].Ends = true, true, "no memory"
		one.Facts, one.Problems = []string{"SIGSEGV"}, []string{"a problem"}
		p.Add(one)
	}
	u := targetOf(9)
	u.Unread = "permission denied"
	p.Add(u)
	p.AddNote("key", []byte("data"))
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// sealed is a part of data behind the magic.
func sealed(data []byte) []byte {
	part := append(partMagic[:len(partMagic):len(partMagic)], data...)
	return binary.LittleEndian.AppendUint32(part, crc32.Checksum(part, castagnoli))
}

func body(part []byte) []byte { return part[len(partMagic) : len(part)-checksumSize] }

// A part that is read is written as it was.
func TestPartsAreWrittenAsTheyWereRead(t *testing.T) {
	part := written(t)
	p, err := Read(bytes.NewReader(part))
	if err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := p.Write(&again); err != nil || !bytes.Equal(part, again.Bytes()) {
		t.Errorf("%v, %d bytes, expected %d", err, again.Len(), len(part))
	}
	if !p.options.ByThread || len(p.records) != 6 || !IsPart(part) || IsPart(part[:3]) {
		t.Errorf("%+v", p.records)
	}
}

// The checksum of a part reveals each change in it, and the error says what was expected.
func TestChangedPartsAreRefused(t *testing.T) {
	part := written(t)
	for i := range part {
		bad := bytes.Clone(part)
		bad[i] ^= 1 << (i % 8)
		if _, err := Read(bytes.NewReader(bad)); !errors.Is(err, ErrPart) {
			t.Errorf("byte %d is changed: %v", i, err)
		}
		if _, err := Read(bytes.NewReader(part[:i])); !errors.Is(err, ErrPart) {
			t.Errorf("it is cut at %d: %v", i, err)
		}
	}
	newer := bytes.Clone(part)
	newer[len(partMagic)-1]++
	for _, one := range []struct {
		part []byte
		want string
	}{
		{newer, "it is of version 2, expected 1"},
		{[]byte("{}"), `it begins with "{}", expected "UNWCMPR"`},
		{nil, `it begins with ""`},
		{part[:len(part)-1], "its checksum is"},
		{sealed(append(bytes.Clone(body(part)), 0)), "something follows its end"},
		{sealed([]byte{0}), "it ends in a number"},
		{sealed([]byte{4}), "a number 4, expected at most 3"},
		{sealed([]byte{0, 0}), "no texts, expected the empty one"},
		{sealed([]byte{0, 2, 0, 0}), "text 1 is the same as 0"},
		{sealed([]byte{0, 1, 1, 'a'}), "text 0 is the same as 1"},
		{sealed([]byte{0, 1, 0, 0, 1, 0, 0}), "a number of an entry of a list that is empty"},
		{sealed([]byte{0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 8}), "a number 8, expected at most 7"},
		{sealed([]byte{0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0}), "node 1 is its own parent"},
		{sealed([]byte{0, 1, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0}), "a run of shape 1 has no thread"},
	} {
		if _, err := Read(bytes.NewReader(one.part)); !errors.Is(err, ErrPart) || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%q, expected %q", err, one.want)
		}
	}
}

// Whatever is changed before the checksum is made is an error, or a part that can be compared.
func TestForgedPartsAreRefusedOrCompared(t *testing.T) {
	data := body(written(t))
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test's
	refused, forged := 0, 4000
	if testing.Short() {
		forged = 400
	}
	for range forged {
		bad := bytes.Clone(data)
		for range 1 + random.IntN(3) {
			bad[random.IntN(len(bad))] = byte(random.IntN(256) >> random.IntN(8))
		}
		if !compareForged(t, bad) {
			refused++
		}
	}
	if refused == 0 || refused == forged {
		t.Errorf("%d of %d were refused", refused, forged)
	}
}

// compareForged reads data as a part, and compares, writes and merges that if it is one.
func compareForged(t *testing.T, data []byte) bool {
	p, err := Read(bytes.NewReader(sealed(data)))
	if err != nil {
		if !errors.Is(err, ErrPart) {
			t.Errorf("%v, expected an error that wraps ErrPart", err)
		}
		return false
	}
	c := p.Result()
	whole, err := json.Marshal(c)
	if err != nil {
		t.Error(err)
	}
	q := reread(t, p)
	both := New(Options{})
	both.Merge(q)
	if again, _ := json.Marshal(both.Result()); !bytes.Equal(whole, again) {
		t.Errorf("another result when it is merged:\n%s\n%s", whole, again)
	}
	return true
}

func FuzzPart(f *testing.F) {
	f.Add(body(written(f)))
	for _, moments := range []int{1, 3} {
		p := New(Options{})
		for m := range moments {
			for rank := range 3 {
				p.Add(at(targetOf(rank, "1 main: a b", fmt.Sprintf("2 w: s%d", m)), "h", 5+int64(rank), 1, 100+m))
			}
		}
		var b bytes.Buffer
		if err := p.Write(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(body(b.Bytes()))
	}
	f.Fuzz(func(t *testing.T, data []byte) { compareForged(t, data) })
}

// A part of which each stack is deep, each role has all of them and each target another one is compared in memory
// and time of its size.
func TestShortPartsAreNoLargeComparisons(t *testing.T) {
	n := 20000
	if testing.Short() {
		n = 5000
	}
	var b []byte
	number := func(list ...int) {
		for _, v := range list {
			b = binary.AppendUvarint(b, uint64(v)) //nolint:gosec // not negative
		}
	}
	number(0, n+1, 0)
	for i := range n {
		text := fmt.Sprint("role", i)
		number(len(text))
		b = append(b, text...)
	}
	number(1, 1, 0, 0, 0, 0, 0, 0, 0, 0) // a frame
	number(n)
	for range n {
		number(1, 0)
	}
	number(n+1, 0)
	for i := range n {
		number(1, 1+i, 0, n-i, 2) // a role for each stack
	}
	number(1, 0, n)
	for i := range n {
		number(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1+i, 0, 4*i)
	}
	number(0)
	p, err := Read(bytes.NewReader(sealed(b)))
	if err != nil {
		t.Fatal(err)
	}
	c := p.Result()
	if len(c.Classes) != n || len(c.Functions) != n || c.Functions[0].ClassCount != n || (c.Functions[0].Classes == nil) == testing.Short() || len(c.Functions[n-1].Classes) != 1 {
		t.Errorf("%d classes, %d nodes, %+v", len(c.Classes), len(c.Functions), c.Functions[0])
	}
}
