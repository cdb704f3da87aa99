// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/locexpr"
)

// exercise reads all that a snapshot gives.
func exercise(t *testing.T, data []byte) {
	s := &Snapshot{path: "fuzz"}
	defer s.Close()
	if s.open(data, options()) != nil {
		return
	}
	info := s.Info()
	if len(info.Problems) > maxProblems+1 {
		t.Errorf("%d problems", len(info.Problems))
	}
	buf := make([]byte, 64)
	for i, m := range s.Modules() {
		if m.ID != i {
			t.Errorf("module %d has ID %d", i, m.ID)
		}
		if m.SourceModule != nil {
			m.SourceModule()
		}
		for _, seg := range m.Segments {
			if seg.Start+seg.Size <= seg.Start {
				t.Errorf("segment %+v", seg)
			}
			s.ReadMemory(0, seg.Start+seg.Size-8, buf)
			if mapped, executable := s.Mapped(seg.Start); !mapped || executable != seg.Executable {
				t.Errorf("segment %+v: mapped %v, executable %v", seg, mapped, executable)
			}
		}
	}
	for i, th := range s.Threads() {
		if err := th.Registers.Validate(); err != nil {
			t.Error(err)
		}
		if th.Handle != uint64(i) {
			t.Errorf("thread %d has handle %d", i, th.Handle)
		}
		for space := range locexpr.AddressSpace(8) {
			if n, err := s.ReadScoped(space, th, 0x40, buf); n < len(buf) && err == nil {
				t.Errorf("space %d: %d bytes and no error", space, n)
			}
		}
	}
	for i := range s.memory.pieces {
		p := &s.memory.pieces[i]
		if p.size == 0 || p.start+p.size < p.start {
			t.Errorf("piece %+v", p)
		}
		if i > 0 && compareInstances(&s.memory.pieces[i-1], p) == 0 && s.memory.pieces[i-1].start+s.memory.pieces[i-1].size > p.start {
			t.Errorf("pieces %d and %d overlap", i-1, i)
		}
		s.ReadMemory(0, p.start, buf)
	}
	// What can be written again is a snapshot.
	c := &Contents{Threads: s.Threads()}
	for _, m := range s.Modules() {
		c.Modules = append(c.Modules, Module{Module: m, Keep: true})
	}
	var again bytes.Buffer
	if Write(&again, c, options()) != nil {
		return
	}
	copied := &Snapshot{path: "copy"}
	defer copied.Close()
	if err := copied.open(again.Bytes(), options()); err != nil || len(copied.Threads()) != len(s.Threads()) || len(copied.Modules()) != len(s.Modules()) {
		t.Errorf("%v: %d threads of %d, %d modules of %d", err, len(copied.Threads()), len(s.Threads()), len(copied.Modules()), len(s.Modules()))
	}
}

// sameDocument compares what archives give whose document is stored in one and
// compressed in the other.
func sameDocument(t *testing.T, archives ...[]byte) {
	var said [2]string
	for i, data := range archives {
		s := &Snapshot{path: "fuzz"}
		if err := s.open(data, options()); err != nil {
			said[i] = err.Error()
		} else {
			for _, th := range s.Threads() {
				said[i] += fmt.Sprintf("%s %x %v\n", th.ID, th.Registers, th.LaunchedBy != nil)
			}
			said[i] += strings.Join(s.Info().Problems, "\n")
		}
		s.Close()
	}
	if said[0] != said[1] {
		t.Errorf("stored: %s\ncompressed: %s", said[0], said[1])
	}
}

// FuzzSnapshot reads arbitrary bytes as an archive.
func FuzzSnapshot(f *testing.F) {
	d, files := full()
	whole := archiveOf(f, append([]file{documentOf(f, d)}, files...)...)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(archiveOf(f))
	f.Add(archiveOf(f, file{documentName, []byte(`{"format_version":1}`), true}))
	f.Fuzz(func(t *testing.T, data []byte) {
		exercise(t, data)
	})
}

// FuzzDocument reads arbitrary text as the document of an archive whose other
// members are as they should be.
func FuzzDocument(f *testing.F) {
	d, files := full()
	f.Add(string(documentOf(f, d).data))
	f.Add(`{"format_version":1,"threads":[{"id":"1","arch":"host","registers":{"pc":"0x1","PC":"0x2"}}]}`)
	f.Add(`{"format_version":1,"memory":[{"file":"memory/w0","space":"local","address":"0x0","scope":{"wave":"1","group":[0,0,0]}}]}`)
	f.Add(`{"format_version":1,"modules":[{"file":"modules/app","arch":"host","segments":[{"address":"0x0","size":"0xffff","start":"0x1"}]}]}`)
	f.Add(`{"a":[true,false,null,-1.5e+3,"\u00e9\ud83d\ude00\\",{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		stored := archiveOf(t, append([]file{{documentName, []byte(text), true}}, files...)...)
		exercise(t, stored)
		sameDocument(t, stored, archiveOf(t, append([]file{{documentName, []byte(text), false}}, files...)...))
	})
}
