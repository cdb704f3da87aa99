// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// TestHeadsOfRecordingsAreChecked refuses heads that no caller sends.
func TestHeadsOfRecordingsAreChecked(t *testing.T) {
	for words, head := range map[string]*Recording{
		"version 9":               {Version: 9},
		"16385 files":             {Version: headVersion, Files: make([]RecordedFile, maxRecordedFiles+1)},
		"257 files beside":        {Version: headVersion, Second: make([]SecondFile, maxSecondFiles+1)},
		"second[0]: role 99":      {Version: headVersion, Second: []SecondFile{{Role: 99}}},
		"role 0, process -1":      {Version: headVersion, Second: []SecondFile{{PID: -1}}},
		"files[0] has 1844674407": {Version: headVersion, Files: []RecordedFile{{Object: &Object{Size: 1<<64 - 1}}}},
	} {
		b, err := head.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeRecording(b); !errors.Is(err, ErrHead) || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, expected %q", err, words)
		}
	}
}

// TestAPathWithTwoFilesIsNeither has a recording of processes with roots of their own.
func TestAPathWithTwoFilesIsNeither(t *testing.T) {
	host := &Host{}
	head := &Recording{Version: headVersion, Files: []RecordedFile{{Path: "/lib/a"}, {Path: "/lib/a"}, {Path: "/lib/b", Problem: "none", File: "/there/b"}}}
	files := host.OpenRecording(head, func(*pb.Question) (*pb.Answer, string, error) { return nil, "", errors.New("asked") }, object.Finder{IsUnseen: true})
	defer files.Close()
	if found, ok := files.Find("/lib/a", nil); !ok || found.Object != nil || !strings.Contains(found.Problem, "does not tell them apart") {
		t.Errorf("%v %v", found, ok)
	}
	if found, ok := files.Find("/lib/b", nil); !ok || found.Problem != "none" || found.Path != "/there/b" {
		t.Errorf("%v %v", found, ok)
	}
	if _, ok := files.Find("/lib/c", nil); ok {
		t.Error("a file that nobody described")
	}
}

// TestRecordingsAnswerNothingElse asks the machine of a recording for what it does not have.
func TestRecordingsAnswerNothingElse(t *testing.T) {
	k := NewRecordingResponder(nil, []string{"/nowhere"})
	defer k.Close()
	for i, q := range []*pb.Question{
		{About: &pb.Question_Memory{Memory: &pb.MemoryQuestion{Size: 1, Most: 4096}}},
		{About: &pb.Question_Mapping{Mapping: &pb.MappingQuestion{}}},
		{About: &pb.Question_Mapping{Mapping: &pb.MappingQuestion{File: true}}},
		{About: &pb.Question_Debug{Debug: &pb.DebugQuestion{Module: 3}}},
		{About: &pb.Question_File{File: &pb.FileQuestion{Module: 0, Outline: true}}},
		{About: &pb.Question_File{File: &pb.FileQuestion{Kind: pb.FileQuestion_SECOND_FILE, Module: 1}}},
		{About: &pb.Question_File{File: &pb.FileQuestion{Kind: pb.FileQuestion_SECOND_FILE, Module: 0}}},
		{About: &pb.Question_File{File: &pb.FileQuestion{Kind: pb.FileQuestion_SOURCE_MODULE}}},
		{},
	} {
		if err := k.Answer(q, func(a *pb.Answer) error {
			if a.GetFailure() == "" {
				t.Errorf("question %d is answered: %v", i, a)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// FuzzHeadOfRecording reads any bytes as the head of a recording, and looks for its files.
func FuzzHeadOfRecording(f *testing.F) {
	b, err := (&Recording{Version: headVersion, Files: []RecordedFile{{Path: "/a", BuildID: []byte{1}, Object: &Object{Name: "/a", Size: 9, InFile: true}}}, Second: []SecondFile{{Name: "perf.data"}}}).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(_ *testing.T, b []byte) {
		head, err := DecodeRecording(b)
		if err != nil {
			return
		}
		host := &Host{}
		files := host.OpenRecording(head, func(*pb.Question) (*pb.Answer, string, error) { return &pb.Answer{}, "", nil }, object.Finder{IsUnseen: true})
		defer files.Close()
		for i := range head.Files {
			_, _ = files.Find(head.Files[i].Path, head.Files[i].BuildID)
		}
		for role := range lastRole + 1 {
			for _, i := range head.Of(role) {
				_, _ = files.Second(i)
			}
		}
	})
}
