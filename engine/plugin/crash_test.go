// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestCrashOfAPluginShowsItsPlace(t *testing.T) {
	a := testArchOf(t, good, Options{})
	_, err := obey(t, a, "panic-elsewhere")
	const place = `exited with status 2: panic: runtime error: index out of range \[7\] with length 2, at plugin\.breakDown \(commands_test\.go:\d+\)`
	var f *Failure
	if !errors.As(err, &f) || !regexp.MustCompile("^its process "+place+", and when asked once more again$").MatchString(f.Reason) {
		t.Errorf("got %v", err)
	}
	p := a.Problems()
	if len(p) != 2 || !regexp.MustCompile(place+" during Disassemble; restarted$").MatchString(p[0]) {
		t.Errorf("problems: %q", p)
	}
}

func TestCrashesAreRead(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a panic": {"listening\npanic: boom\n\ngoroutine 34 [running]:\nmain.decode({0xc000, 0x2}, 0x7)\n\t/src/my/decode.go:12 +0x1d\nmain.(*arch).FrameRules(0x0?)\n\t/src/my/arch.go:3 +0x2\nmain.main()\n\t/src/my/main.go:3 +0x2\n",
			"panic: boom, at main.decode (decode.go:12), called by main.(*arch).FrameRules (arch.go:3)"},
		"a nil pointer": {"panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x47a0a4]\n\ngoroutine 1 [running]:\npanic({0x1, 0x2})\n\t/go/src/runtime/panic.go:792 +0x132\nruntime.sigpanic()\n\t/go/src/runtime/signal_unix.go:917 +0x1\nexample.com/vendor/isa.(*table).find(...)\n\t/src/isa/table.go:9\ncreated by main.main in goroutine 1\n\t/src/main.go:4 +0x1\n\ngoroutine 2 [select]:\nmain.other()\n\t/src/main.go:9 +0x1\n",
			"panic: runtime error: invalid memory address or nil pointer dereference, at isa.(*table).find (table.go:9)"},
		"a fatal error": {"runtime: goroutine stack exceeds 1000000000-byte limit\nfatal error: stack overflow\n\nruntime stack:\nruntime.throw({0x4, 0xe})\n\t/go/src/runtime/panic.go:1101 +0x48\n\ngoroutine 20 gp=0xc00 m=3 mp=0xc01 [running]:\nmain.f(0x1)\n\t/src/f.go:5 +0x9\n",
			"fatal error: stack overflow, at main.f (f.go:5)"},
		"a signal in C": {"SIGSEGV: segmentation violation\nPC=0x7f m=0 sigcode=1 addr=0x0\nsignal arrived during cgo execution\n\ngoroutine 1 [syscall]:\nruntime.cgocall(0x1, 0x2)\n\t/go/src/runtime/cgocall.go:167 +0x4b\nmain._Cfunc_decode(0x0)\n\t_cgo_gotypes.go:45 +0x3f\n",
			"SIGSEGV: segmentation violation, at main._Cfunc_decode (_cgo_gotypes.go:45)"},
		"what a terminal obeys":   {"panic: \x1b[31mred\n", `panic: \x1b[31mred`},
		"a line that is no crash": {"a panic: not\n{\"@message\":\"x\"}\n", ""},
	} {
		l := stderrLog{logger: hclog.NewNullLogger()}
		if _, err := l.Write([]byte(c.text)); err != nil {
			t.Fatal(err)
		}
		if got := l.crashed(); got != c.want {
			t.Errorf("%s: %q, expected %q", name, got, c.want)
		}
		if words := l.lastWords(); c.want != "" && words != c.want {
			t.Errorf("%s: the last words are %q", name, words)
		}
	}
}

func TestLinesOfAPluginAreLogged(t *testing.T) {
	var out bytes.Buffer
	l := stderrLog{logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: &out, DisableTime: true})}
	_, _ = l.Write([]byte("plain \x1b[1m\n" +
		`{"@level":"info","@message":"read the table","@timestamp":"x","entries":3,"error":"it is short"}` + "\n" +
		`{"@level":"error","@message":"the plugin panicked","call":"FrameRules","stack":"goroutine 1 [running]:\nmain.f()\n\t/src/f.go:1\n"}` + "\n"))
	want := strings.Join([]string{
		`[DEBUG] plain \x1b[1m`,
		`[INFO]  read the table, entries: 3, error: it is short`,
		`[ERROR] the plugin panicked, call: FrameRules`,
		`[DEBUG] goroutine 1 [running]:`,
		`[DEBUG] main.f()`,
		`[DEBUG]   /src/f.go:1`,
	}, "\n") + "\n"
	if out.String() != want {
		t.Errorf("logged:\n%s\nexpected:\n%s", out.String(), want)
	}
}
