// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/service/job"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// evaluateByGRPC sends options, and a target where there is one.
func evaluateByGRPC(t *testing.T, c pb.UnwinddClient, o *pb.EvaluateOptions, target []byte) (string, *pb.ReportEnd, error) {
	t.Helper()
	st, err := c.Evaluate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = st.Send(&pb.EvaluateRequest{Part: &pb.EvaluateRequest_Options{Options: o}})
	if target != nil {
		_ = st.Send(&pb.EvaluateRequest{Part: &pb.EvaluateRequest_Data{Data: target}})
	}
	_ = st.CloseSend() // the report says what went wrong
	return readReport(st)
}

// TestEvaluationsByGRPCAndHTTP has expressions and a variable answered by both.
func TestEvaluationsByGRPCAndHTTP(t *testing.T) {
	s := start(t, testOptions(t))
	s.putCrash(t)
	c := pb.NewUnwinddClient(s.dial(t))
	core := file(t, crashCore)
	for _, x := range []struct {
		query   string
		options *pb.EvaluateOptions
		target  []byte
		want    string // in the answer, without white space
	}{
		{"arch=x86_64&expr=lit5", &pb.EvaluateOptions{Arch: "x86_64", Expr: proto.String("lit5")}, nil, `{"kind":"value","value":{"type":"generic","hex":"0x5"}}`},
		{"arch=x86_64&expr=", &pb.EvaluateOptions{Arch: "x86_64", Expr: proto.String("")}, nil, `{"kind":"location","places":[{"storage":"undefined"}]}`},
		{
			"arch=amdgpu&wave=32&lane=3&expr=LLVM_push_lane&trace",
			&pb.EvaluateOptions{Arch: "amdgpu", Wave: 32, Lane: proto.Uint32(3), Expr: proto.String("LLVM_push_lane"), Trace: true}, nil,
			`"hex":"0x3"},"trace":[{"offset":0,"op":"DW_OP_LLVM_push_lane","stack":["0x3"]}]}`,
		},
		{
			"arch=x86_64&iteration=0&expr=LLVM_push_iteration&stack=7",
			&pb.EvaluateOptions{Arch: "x86_64", Iteration: proto.Int64(0), Expr: proto.String("LLVM_push_iteration"), Stack: []string{"7"}}, nil, `"hex":"0x0"`,
		},
		{"arch=x86_64&expr=lit1;plus", &pb.EvaluateOptions{Arch: "x86_64", Expr: proto.String("lit1;plus")}, nil, `{"error":{"kind":"ill-formed","offset":1,"op":"DW_OP_plus"`},
		{"arch=x86_64&expr=fly", &pb.EvaluateOptions{Arch: "x86_64", Expr: proto.String("fly")}, nil, `{"error":{"kind":"ill-formed","offset":0,`},
		{"frame=7&var=batch[1]->headers->value", &pb.EvaluateOptions{Frame: 7, Var: "batch[1]->headers->value"}, core, `"value":"0x48d02a\"example.org\""`},
		{"arch=x86_64&frame=2&expr=reg7&read=64", &pb.EvaluateOptions{Arch: "x86_64", Frame: 2, Expr: proto.String("reg7"), Read: 64}, core, `{"storage":"implicit","bit_offset":0,"bytes":"b04a74befe7f0000"}],"read":"b04a74befe7f0000"}`},
	} {
		text := s.post(t, "/v1/eval?"+strings.ReplaceAll(x.query, ";", "%3B"), x.target)
		if !strings.Contains(strings.Join(strings.Fields(text), ""), x.want) {
			t.Errorf("%s: %s, expected %s", x.query, text, x.want)
		}
		got, end, err := evaluateByGRPC(t, c, x.options, x.target)
		if err != nil || end == nil || got != text {
			t.Errorf("%s by gRPC: %v %v %s\nexpected\n%s", x.query, err, end, got, text)
		}
	}
	_, _, err := evaluateByGRPC(t, c, &pb.EvaluateOptions{Arch: "x86_64"}, nil)
	if got := status.Convert(err); got.Code() != codes.InvalidArgument || got.Message() != "--expr is missing" {
		t.Error(err)
	}
	_, _, err = evaluateByGRPC(t, c, &pb.EvaluateOptions{Arch: "x86_64", Expr: proto.String(strings.Repeat("lit1;", maxEvaluation))}, nil)
	if got := status.Convert(err); got.Code() != codes.InvalidArgument || !strings.Contains(got.Message(), "bytes as JSON, expected at most 98304") {
		t.Error(err)
	}
}

// TestEvaluationsThatAreNone has evaluations that have no meaning, and those of which nothing
// is there. The server answers more after them.
func TestEvaluationsThatAreNone(t *testing.T) {
	s := start(t, testOptions(t))
	core := string(file(t, crashCore))
	for _, c := range []struct {
		query, body string
		kind        *problemKind
		words       string
	}{
		{"", "", badRequest, "--arch is missing"},
		{"arch=x86_64", "", badRequest, "--expr is missing"},
		{"arch=nope&expr=lit1", "", badRequest, `--arch: no architecture`},
		{"arch=x86_64&expr=lit1&format=html", "", badRequest, "--format html: expected text or json"},
		{"arch=x86_64&expr=lit1&unit=/etc/passwd:0", "", badRequest, `no parameter "unit", expected arch, cfa`},
		{"arch=x86_64&expr=lit1&snapshot=/etc/passwd", "", badRequest, `no parameter "snapshot"`},
		{"arch=x86_64&expr=lit1&kind=thing", "", badRequest, "--kind thing"},
		{"arch=x86_64&expr=lit1&thread=1", "", badRequest, "--thread and --frame need --snapshot"},
		{"arch=x86_64&expr=lit1&lane=4294967295", "", badRequest, "--lane 4294967295: expected 0 to 2147483647"},
		{"arch=x86_64&expr=lit1&iteration=-1", "", badRequest, "--iteration -1"},
		{"arch=x86_64&expr=lit1&iteration=x", "", badRequest, `parameter iteration is "x", expected a number`},
		{"arch=x86_64&expr=lit1&read=8388609", "", badRequest, "--read 8388609: expected at most 8388608 bits"},
		{"arch=x86_64&expr=lit1&reg=rsp", "", badRequest, "--reg rsp: expected REGISTER=HEX"},
		{"arch=x86_64&expr=lit1&mem=moon:0=00", "", badRequest, "--mem moon:0=00: x86_64 has no address space moon"},
		{"arch=x86_64&expr=lit1&cfa=x", "", badRequest, "--cfa"},
		{"arch=x86_64&expr=lit1&object=fly", "", badRequest, "--object"},
		{"arch=x86_64&expr=lit1&stack=x", "", badRequest, "--stack x"},
		{"arch=amdgpu&expr=lit1&wave=33", "", badRequest, "--wave 33"},
		{"arch=amdgpu&expr=lit1&processor=z80", "", badRequest, "--processor z80"},
		{"var=batch", "", badRequest, "--var needs --snapshot"},
		{"arch=x86_64&expr=lit1&reg=rsp=1", core, badRequest, "--reg and --mem do not go with --snapshot"},
		{"var=batch&expr=lit1", core, badRequest, "--var does not go with --expr"},
		{"var=a[", core, badRequest, "--var: "},
		{"var=batch&depth=4000000000", core, badRequest, "--depth"},
		{"var=batch&frame=7", "no target", unreadable, "not a target"},
		{"var=nope&frame=7", core, unreadable, "--var nope"},
		{"var=batch&frame=4294967295", core, unreadable, "no such frame"},
		{"var=batch&thread=nobody&name=the.core", core, unreadable, "the.core: no thread nobody among its 4"},
		{"arch=x86_64&expr=plus&format=text", "", unreadable, "DW_OP_plus"},
	} {
		answer, text := s.ask(t, http.MethodPost, "/v1/eval?"+c.query, strings.NewReader(c.body))
		wantProblem(t, answer, text, c.kind, c.words)
	}
	// Numbers of 64 bits are parameters, too.
	answer, text := s.ask(t, http.MethodPost, "/v1/symbolize?build-id=0102&addresses=0x1&addresses=2", strings.NewReader("{}"))
	wantProblem(t, answer, text, notFound, "0102")
}

// TestEvaluationsAreBounded has expressions that would go on, or write much.
func TestEvaluationsAreBounded(t *testing.T) {
	s := start(t, testOptions(t))
	c := pb.NewUnwinddClient(s.dial(t))
	for _, x := range []struct{ expr, want string }{
		{"lit1; skip -4", `"kind": "evaluation"`},
		{"regx SGPR3" + strings.Repeat("; LLVM_extend 32, 1000", 4), `"more_parts": 999`},
		{strings.Repeat("lit1;", 15_000), `"error": {`},
	} {
		text, _, err := evaluateByGRPC(t, c, &pb.EvaluateOptions{Arch: "amdgpu", Wave: 64, Expr: &x.expr, Trace: true}, nil)
		if err != nil || !strings.Contains(text, x.want) || len(text) > 64<<20 {
			t.Errorf("%.40s: %v, %d bytes, %.300s, expected %s", x.expr, err, len(text), text, x.want)
		}
	}
	// As much as there may be is one message of a worker.
	o := &pb.EvaluateOptions{Arch: "x86_64", Expr: proto.String("lit0; deref"), Kind: "value"}
	for i := range 2000 {
		o.Mem, o.Reg = append(o.Mem, fmt.Sprintf("global:%x=01", i)), append(o.Reg, fmt.Sprintf("rax=%x", i))
	}
	for _, more := range []int{1, 35_000} {
		o.Object = "lit1" + strings.Repeat(" ", more)
		if text, _, err := evaluateByGRPC(t, c, o, nil); err != nil || !strings.Contains(text, `"hex": "0x101010101010101"`) {
			t.Errorf("%v %s", err, text)
		}
	}
}

// lanes32 is a vector register of 32 lanes that hold their numbers.
func lanes32() string {
	var b []byte
	for i := range uint32(32) {
		b = binary.LittleEndian.AppendUint32(b, i)
	}
	return hex.EncodeToString(b)
}

// evaluating sets what parameters of an evaluation are in its job.
var evaluating = map[string]func(*job.Evaluate, string) error{
	"arch":      func(j *job.Evaluate, v string) error { j.Arch = v; return nil },
	"processor": func(j *job.Evaluate, v string) error { j.Processor = v; return nil },
	"expr":      func(j *job.Evaluate, v string) error { j.Expr = &v; return nil },
	"reg":       func(j *job.Evaluate, v string) error { j.Reg = append(j.Reg, v); return nil },
	"mem":       func(j *job.Evaluate, v string) error { j.Mem = append(j.Mem, v); return nil },
	"stack":     func(j *job.Evaluate, v string) error { j.Stack = append(j.Stack, v); return nil },
	"cfa":       func(j *job.Evaluate, v string) error { j.Cfa = v; return nil },
	"object":    func(j *job.Evaluate, v string) error { j.Object = v; return nil },
	"kind":      func(j *job.Evaluate, v string) error { j.Kind = v; return nil },
	"var":       func(j *job.Evaluate, v string) error { j.Var = v; return nil },
	"trace":     func(j *job.Evaluate, _ string) error { j.Trace = true; return nil },
	"frame":     func(j *job.Evaluate, v string) (err error) { j.Frame, err = uintOf(v); return err },
	"depth":     func(j *job.Evaluate, v string) (err error) { j.Depth, err = uintOf(v); return err },
	"elements":  func(j *job.Evaluate, v string) (err error) { j.Elements, err = uintOf(v); return err },
	"read":      func(j *job.Evaluate, v string) (err error) { j.Read, err = uintOf(v); return err },
	"wave":      func(j *job.Evaluate, v string) (err error) { j.Wave, err = uintOf(v); return err },
	"lane": func(j *job.Evaluate, v string) error {
		lane, err := uintOf(v)
		j.Lane = &lane
		return err
	},
}

func uintOf(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err
}

// evaluatedHere is what an evaluation gives that no server makes.
func evaluatedHere(t *testing.T, format string, query url.Values, path string) (string, error) {
	t.Helper()
	e := job.NewEvaluate()
	e.Format = format
	for name, values := range query {
		for _, v := range values {
			if err := evaluating[name](&e, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	with := engine.Options{Plugins: inProcess(), Sysroot: t.TempDir(), DebugDirs: []string{examples + "crash"}}
	own, err := engine.New(with)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out bytes.Buffer
	j := job.Job{Evaluate: &e}
	_, err = j.Run(t.Context(), &job.Request{Tools: &job.Tools{Engine: own, Options: with}, Input: in, Name: "target", Report: &out})
	return out.String(), err
}

// TestServeEvaluates has a server answer what this process does, of expressions in states of
// their own and in frames of a core, of those that fail, and of variables.
func TestServeEvaluates(t *testing.T) {
	s := start(t, testOptions(t))
	s.putCrash(t)
	nothing := filepath.Join(t.TempDir(), "nothing")
	if err := os.WriteFile(nothing, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"arch=x86_64 expr=lit5;lit3;minus",
		"arch=x86_64 expr=bregx,rbp,-8;deref reg=RBP=1008 mem=global:0x1000=2a00000000000000 trace=true",
		"arch=x86_64 expr=call_frame_cfa;lit16;minus cfa=none:7000 kind=value",
		"arch=x86_64 expr=push_object_address;plus_uconst,8 object=addr,0x400 kind=location",
		"arch=amdgpu wave=32 expr=DW_OP_regx,VGPR0;DW_OP_LLVM_offset_uconst,20 reg=v0=" + lanes32() + " read=32",
		"arch=amdgpu processor=gfx90a expr=lit8;lit5;LLVM_form_aspace_address lane=3 mem=private_wave:0x20c=78563412 read=32",
		"arch=x86_64 expr=plus stack=3 stack=0x4",
		"arch=x86_64 expr=lit1;bra,1000;lit7",
		"arch=x86_64 expr=lit1;lit0;div trace=true",
		"arch=x86_64 expr=reg3 read=64",
		"arch=x86_64 expr=DW_OP_fly",
		"arch=x86_64 expr=breg7,8;deref frame=2 snapshot=" + crashCore,
		"arch=x86_64 expr=call_frame_cfa frame=5 snapshot=" + crashCore,
		"arch=x86_64 expr=lit1 frame=99 snapshot=" + crashCore,
		"frame=7 var=batch[1]->headers->value snapshot=" + crashCore,
		"frame=7 var=batch depth=5 elements=1 snapshot=" + crashCore,
	} {
		path, query := nothing, url.Values{}
		for _, arg := range strings.Fields(args) {
			name, value, _ := strings.Cut(strings.ReplaceAll(arg, ",", " "), "=")
			if name == "snapshot" {
				path = value
				continue
			}
			query.Add(name, value)
		}
		for _, format := range []string{"json", "text"} {
			query.Del("format")
			want, err := evaluatedHere(t, format, query, path)
			if err != nil && format == "text" {
				continue // as JSON it says why
			}
			if want == "" || err != nil {
				t.Fatalf("%s: %q, %v", args, want, err)
			}
			query.Set("format", format)
			if got := s.post(t, "/v1/eval?"+query.Encode(), file(t, path)); got != want {
				t.Errorf("%s: %s\nexpected\n%s", args, got, want)
			}
		}
	}
}
