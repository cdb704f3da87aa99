// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"testing"
)

func TestQuestions(t *testing.T) {
	free, bound := &Session{}, &Session{Object: "obj"}
	hex := &Session{Object: "obj", Hex: true}
	tests := []struct {
		session *Session
		line    string
		want    question
		err     string
	}{
		{free, "a 0x10", question{module: "a", path: "a", address: 16}, ""},
		{free, `"a b" 16 rest`, question{module: "a b", path: "a b", address: 16}, ""},
		{free, "DATA FILE:a 020", question{kind: AnswerData, module: "a", path: "a", address: 16}, ""},
		{free, "FRAME BUILDID:ab 0b1", question{kind: AnswerFrame, module: "AB", buildID: []byte{0xab}, address: 1}, ""},
		{free, "a f+0x2", question{module: "a", path: "a", symbol: "f", offset: 2}, ""},
		{free, "a", question{module: "a", path: "a"}, "no module offset has been specified"},
		{free, "BUILDID:a 1", question{}, "wrong format of build-id"},
		{free, "'a 1", question{}, "no input filename has been specified"},
		{free, "FILE:BUILDID:a 1", question{}, "duplicate input file specification prefix"},
		{bound, "16", question{module: "obj", path: "obj", address: 16}, ""},
		{bound, "FILE:a 16", question{}, "input file has already been specified"},
		{bound, "16x", question{module: "obj", path: "obj"}, "expected a number as module offset"},
		{bound, "", question{}, ""},
		{hex, "10", question{module: "obj", path: "obj", address: 16}, ""},
		{hex, "0Xff", question{module: "obj", path: "obj", address: 255}, ""},
		{hex, "main", question{module: "obj", path: "obj", symbol: "main"}, ""},
	}
	for _, test := range tests {
		got, err := test.session.parse(test.line)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != test.err || got.kind != test.want.kind || got.path != test.want.path || got.module != test.want.module ||
			string(got.buildID) != string(test.want.buildID) || got.address != test.want.address ||
			got.symbol != test.want.symbol || got.offset != test.want.offset {
			t.Errorf("%q: %+v, %q; want %+v, %q", test.line, got, text, test.want, test.err)
		}
	}
}

func FuzzQuestion(f *testing.F) {
	for _, line := range []string{
		"gcc 0xA", "CODE gcc 0xA", "DATA FILE:gcc 0", "FRAME BUILDID:abcd 0x12", `"with blank" 010`, "'open 1", "gcc entry+0x4", "+1",
		"FILE:", "BUILDID:zz 1", "FILE:FILE:gcc 1", "gcc 1e", "0b101", "\r", " ",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, s := range []*Session{{}, {Object: "obj"}, {Object: "obj", Hex: true}, {BuildID: []byte{1}}} {
			q, err := s.parse(line)
			if err == nil && q.path == "" && q.buildID == nil {
				t.Errorf("%q names no file, and that is no error", line)
			}
		}
	})
}
