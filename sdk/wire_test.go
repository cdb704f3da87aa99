// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// A trip takes a message over the wire and back.
type trip struct {
	message any
	over    func(any) (any, error)
}

func tripOf[M any, P any, PP interface {
	*P
	proto.Message
}](encode func(*M) (PP, error), decode func(PP) (*M, error)) trip {
	return trip{new(M), func(m any) (any, error) {
		p, err := encode(m.(*M))
		if err != nil {
			return nil, err
		}
		b, err := proto.Marshal(p)
		if err != nil {
			return nil, err
		}
		var q P
		if err := proto.Unmarshal(b, PP(&q)); err != nil {
			return nil, err
		}
		back, err := decode(PP(&q))
		return back, err
	}}
}

func trips() []trip {
	return []trip{
		tripOf(sure(encodeDescription), decodeDescription),
		tripOf(sure(encodeOpenTargetRequest), decodeOpenTargetRequest),
		tripOf(sure(encodeOpenObjectRequest), decodeOpenObjectRequest),
		tripOf(sure(encodeFrameRulesRequest), decodeFrameRulesRequest),
		tripOf(sure(encodeFrameRulesAnswer), decodeFrameRulesAnswer),
		tripOf(encodeBindThreadsRequest, decodeBindThreadsRequest),
		tripOf(sure(encodeBindThreadsAnswer), decodeBindThreadsAnswer),
		tripOf(sure(encodeTranslateRequest), decodeTranslateRequest),
		tripOf(sure(encodeTranslateAnswer), decodeTranslateAnswer),
		tripOf(encodeClassifyReturnRequest, decodeClassifyReturnRequest),
		tripOf(sure(encodeClassifyReturnAnswer), decodeClassifyReturnAnswer),
		tripOf(sure(encodeDisassembleRequest), decodeDisassembleRequest),
		tripOf(sure(encodeDisassembleAnswer), decodeDisassembleAnswer),
		tripOf(sure(encodeRuntimeDescription), decodeRuntimeDescription),
		tripOf(sure(encodeOpenRuntimeRequest), decodeOpenRuntimeRequest),
		tripOf(sure(encodeOpenRuntimeAnswer), decodeOpenRuntimeAnswer),
		tripOf(sure(encodeCodeRulesRequest), decodeCodeRulesRequest),
		tripOf(encodeCodeRulesAnswer, decodeCodeRulesAnswer),
		tripOf(sure(encodeManagedFramesRequest), decodeManagedFramesRequest),
		tripOf(encodeManagedFramesAnswer, decodeManagedFramesAnswer),
		tripOf(sure(encodeManagedThreadsRequest), decodeManagedThreadsRequest),
		{new(ManagedThreadsAnswer), func(m any) (any, error) {
			parts, err := managedThreadsParts(m.(*ManagedThreadsAnswer))
			back := &ManagedThreadsAnswer{}
			for _, p := range parts {
				if err == nil {
					err = addManagedThreads(back, p)
				}
			}
			return back, err
		}},
		{new(OpenTargetAnswer), func(m any) (any, error) {
			type batch struct{ Threads []TargetThread }
			threads := m.(*OpenTargetAnswer).Threads
			return tripOf(sure(encodeOpenTargetAnswer), func(p *pb.OpenTargetAnswer) (*OpenTargetAnswer, error) {
				a, left, err := decodeOpenTargetAnswer(p)
				if err != nil || left != len(threads) {
					return nil, fmt.Errorf("%d threads follow, %w", left, err)
				}
				back, err := tripOf(func(b *batch) (*pb.TargetThreads, error) { return encodeTargetThreads(b.Threads) },
					func(p *pb.TargetThreads) (*batch, error) {
						list, err := decodeTargetThreads(p)
						return &batch{list}, err
					}).over(&batch{threads})
				if err == nil {
					a.Threads = back.(*batch).Threads
				}
				return a, err
			}).over(m)
		}},
		{new(OpenObjectAnswer), func(m any) (any, error) {
			tables := m.(*OpenObjectAnswer).Tables
			return tripOf(encodeOpenObjectAnswer, func(p *pb.OpenObjectAnswer) (*OpenObjectAnswer, error) {
				a, err := decodeOpenObjectAnswer(p)
				left := MaxBatch
				for i := range tables {
					for j := range tables[i].Rows {
						part := &pb.TableRows{Table: uint32(i), Rows: encodeRows(tables[i].Rows[j : j+1])}
						if err == nil {
							err = appendRows(a, part, &left)
						}
					}
				}
				return a, err
			}).over(m)
		}},
	}
}

func TestEveryMethodHasItsMessagesTested(t *testing.T) {
	tested := map[reflect.Type]bool{}
	for _, trip := range trips() {
		tested[reflect.TypeOf(trip.message)] = true
	}
	for _, methods := range []reflect.Type{reflect.TypeFor[Architecture](), reflect.TypeFor[Runtime]()} {
		for i := range methods.NumMethod() {
			m := methods.Method(i)
			types := []reflect.Type{m.Type.Out(0)}
			if m.Type.NumIn() > 1 {
				types = append(types, m.Type.In(m.Type.NumIn()-1))
			}
			for _, typ := range types {
				if !tested[typ] {
					t.Errorf("%s: no round trip for %v", m.Name, typ)
				}
			}
		}
	}
}

func TestEveryFieldSurvivesTheTrip(t *testing.T) {
	for _, trip := range trips() {
		t.Run(reflect.TypeOf(trip.message).Elem().Name(), func(t *testing.T) {
			m := reflect.New(reflect.TypeOf(trip.message).Elem())
			fullFiller().fill(m.Elem())
			if zero := zeroFields("", m.Elem()); zero != nil {
				t.Fatalf("the test leaves %q zero, and so does not see whether they survive", zero)
			}
			back, err := trip.over(m.Interface())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m.Interface(), back); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRandomMessagesSurviveTheTrip(t *testing.T) {
	for _, trip := range trips() {
		t.Run(reflect.TypeOf(trip.message).Elem().Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := reflect.New(reflect.TypeOf(trip.message).Elem())
				randomFiller(t).fill(m.Elem())
				back, err := trip.over(m.Interface())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(m.Interface(), back); diff != "" {
					t.Fatal(diff)
				}
			})
		})
	}
}

func TestNoListIsNotAnEmptyOne(t *testing.T) {
	empty := []cfi.RegisterRule{}
	for _, m := range []any{
		&OpenObjectAnswer{DefaultRules: empty, Functions: []Function{{DefaultRules: empty}, {DefaultRules: nil}}},
		&OpenObjectAnswer{DefaultRules: nil, Functions: []Function{{DefaultRules: nil}, {DefaultRules: empty}}},
		&TranslateRequest{Expr: []byte{}},
		&TranslateRequest{Expr: nil},
	} {
		for _, trip := range trips() {
			if reflect.TypeOf(trip.message) != reflect.TypeOf(m) {
				continue
			}
			back, err := trip.over(m)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m, back); diff != "" {
				t.Error(diff)
			}
		}
	}
}

func TestTextThatIsNotUTF8SurvivesTheTrip(t *testing.T) {
	m := &OpenObjectRequest{Path: "/\xff", Symbols: []SymbolInfo{{Name: "\xfe\x00"}}, Sections: []SectionInfo{{Name: "\x80"}}}
	p, err := proto.Marshal(encodeOpenObjectRequest(m))
	if err != nil {
		t.Fatal(err)
	}
	var q pb.OpenObjectRequest
	if err := proto.Unmarshal(p, &q); err != nil {
		t.Fatal(err)
	}
	back, err := decodeOpenObjectRequest(&q)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, back); diff != "" {
		t.Error(diff)
	}
}

// spoil visits every column of a message and changes its length or its values,
// and calls check with what was done; then it puts things right again.
func spoil(m reflect.Value, at string, check func(what string)) {
	switch m.Kind() {
	case reflect.Pointer:
		if !m.IsNil() {
			spoil(m.Elem(), at, check)
		}
	case reflect.Struct:
		for i := range m.NumField() {
			if f := m.Type().Field(i); f.IsExported() {
				spoil(m.Field(i), at+"."+f.Name, check)
			}
		}
	case reflect.Slice:
		old := reflect.ValueOf(m.Interface())
		if m.Len() > 0 {
			m.Set(old.Slice(0, old.Len()-1))
			check(at + " is too short")
			m.Set(reflect.Append(old.Slice3(0, old.Len(), old.Len()), old.Index(0)))
			check(at + " is too long")
			m.Set(reflect.Zero(m.Type()))
			check(at + " is absent")
			m.Set(old)
		}
		for i := range m.Len() {
			spoil(m.Index(i), at+"[]", check)
		}
	case reflect.Int32:
		old := m.Int()
		for _, v := range []int64{-1, 99, 1<<31 - 1} {
			m.SetInt(v)
			check(fmt.Sprintf("%s is %d", at, v))
		}
		m.SetInt(old)
	case reflect.Uint32:
		old := m.Uint()
		m.SetUint(1<<32 - 1)
		check(at + " is huge")
		m.SetUint(old)
	}
}

// TestColumnsThatDisagreeAreErrors spoils every column of a filled message:
// decoding must either refuse it, naming the message, or the change must be one
// of those that mean something else, which are few and listed.
func TestColumnsThatDisagreeAreErrors(t *testing.T) {
	rows := []cfi.Row{{}, {}}
	fullFiller().fill(reflect.ValueOf(&rows[0]).Elem())
	fullFiller().fill(reflect.ValueOf(&rows[1]).Elem())
	answer := &BindThreadsAnswer{}
	fullFiller().fill(reflect.ValueOf(answer).Elem())
	request := &BindThreadsRequest{}
	fullFiller().fill(reflect.ValueOf(request).Elem())
	object := &OpenObjectAnswer{}
	fullFiller().fill(reflect.ValueOf(object).Elem())
	target := &OpenTargetAnswer{}
	fullFiller().fill(reflect.ValueOf(target).Elem())
	rules := &FrameRulesAnswer{}
	fullFiller().fill(reflect.ValueOf(rules).Elem())
	classes := &ClassifyReturnAnswer{}
	fullFiller().fill(reflect.ValueOf(classes).Elem())
	code := &DisassembleAnswer{}
	fullFiller().fill(reflect.ValueOf(code).Elem())

	requestPB, err := encodeBindThreadsRequest(request)
	if err != nil {
		t.Fatal(err)
	}
	objectPB, err := encodeOpenObjectAnswer(object)
	if err != nil {
		t.Fatal(err)
	}
	threadsPB, err := encodeTargetThreads(target.Threads)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		message any
		decode  func() error
		// plain are scalar values, whose every number is well-formed here; what
		// they mean is for Validate.
		plain map[string]bool
	}{
		{encodeRows(rows), nil, nil},
		{encodeBindThreadsAnswer(answer), nil, map[string]bool{
			".Lanes": true, ".Widths.Firsts": true, ".Widths.Counts": true, ".Widths.Bits": true,
			".Maps.Ranges.Elements": true, ".Maps.Ranges.Registers": true,
		}},
		{requestPB, nil, map[string]bool{".Registers.Numbers": true, ".Lanes": true}},
		{objectPB, nil, map[string]bool{
			".Functions.Lanes": true, ".DefaultRules": true,
			".Tables.Sections": true, ".Functions.Sections": true, ".PositionMaps.Sections": true, ".Variables.Sections": true,
			".Variables.Registers is absent": true, // of an older plugin
		}},
		{encodeOpenTargetAnswer(target), nil, map[string]bool{
			".Dispatches.Grids": true, ".Dispatches.Groups": true, ".Objects.Intos is absent": true, ".Memory.Intos is absent": true,
		}},
		{threadsPB, nil, map[string]bool{
			".Lanes": true, ".Registers.Numbers": true, ".Saved.Firsts": true, ".Saved.Counts": true, ".Waves.Groups": true, ".Waves.InGroup": true,
			".Stops.TrapIds": true, ".Waves.Clusters.Clusters": true, ".Leads": true, ".Leads is absent": true,
			".LaneStates.Lanes": true, ".LaneStates.Registers.Numbers": true, ".LaneStates.Saved.Firsts": true, ".LaneStates.Saved.Counts": true,
			".Saved.Intos is absent": true, ".Memory.Intos is absent": true,
			".LaneStates.Saved.Intos is absent": true, ".LaneStates.Memory.Intos is absent": true,
		}},
		{encodeFrameRulesAnswer(rules), nil, nil},
		{encodeClassifyReturnAnswer(classes), nil, nil},
		{encodeDisassembleAnswer(code), nil, map[string]bool{
			".Sizes": true, ".Accesses.Sizes": true, ".Accesses.Bases": true, ".Accesses.Indexes": true,
			".Accesses.Segments": true, ".Accesses.Scales": true, ".Accesses.AddressBits": true, ".Accesses.IndexBits": true,
			".Kinds is absent": true, // no instruction has one
			".Registers":       true, ".RegisterBits": true,
		}},
	} {
		decode := c.decode
		if decode == nil {
			decode = func() error {
				var err error
				switch p := c.message.(type) {
				case *pb.Rows:
					_, err = decodeRows(p)
				case *pb.BindThreadsAnswer:
					_, err = decodeBindThreadsAnswer(p)
				case *pb.BindThreadsRequest:
					_, err = decodeBindThreadsRequest(p)
				case *pb.OpenObjectAnswer:
					_, err = decodeOpenObjectAnswer(p)
				case *pb.OpenTargetAnswer:
					_, _, err = decodeOpenTargetAnswer(p)
				case *pb.TargetThreads:
					_, err = decodeTargetThreads(p)
				case *pb.FrameRulesAnswer:
					_, err = decodeFrameRulesAnswer(p)
				case *pb.ClassifyReturnAnswer:
					_, err = decodeClassifyReturnAnswer(p)
				case *pb.DisassembleAnswer:
					_, err = decodeDisassembleAnswer(p)
				}
				return err
			}
		}
		if err := decode(); err != nil {
			t.Fatalf("%T: %v", c.message, err)
		}
		spoiled := 0
		spoil(reflect.ValueOf(c.message), "", func(what string) {
			spoiled++
			for field := range c.plain {
				if what == field+"[] is huge" || what == field {
					return
				}
			}
			err := decode()
			if err == nil {
				t.Errorf("%T: %s: accepted", c.message, what)
			} else if !errors.Is(err, ErrMalformed) {
				t.Errorf("%T: %s: %v", c.message, what, err)
			}
		})
		if spoiled < 8 {
			t.Errorf("%T: only %d columns were spoiled", c.message, spoiled)
		}
	}
}

func TestMessagesThatContradictThemselvesAreNotSent(t *testing.T) {
	for name, err := range map[string]error{
		"registers": func() error {
			_, err := encodeBindThreadsRequest(&BindThreadsRequest{Threads: []ThreadState{{Registers: Registers{Numbers: []uint32{1}}}}})
			return err
		}(),
		"offsets": func() error {
			_, err := encodeClassifyReturnRequest(&ClassifyReturnRequest{PCs: []uint64{1, 2}, Offsets: []uint32{0, 3, 2}, Code: []byte{1, 2}})
			return err
		}(),
		"too few offsets": func() error {
			_, err := encodeClassifyReturnRequest(&ClassifyReturnRequest{PCs: []uint64{1, 2}, Offsets: []uint32{0, 2}, Code: []byte{1, 2}})
			return err
		}(),
		"code beside the offsets": func() error {
			_, err := encodeClassifyReturnRequest(&ClassifyReturnRequest{PCs: []uint64{1}, Offsets: []uint32{0, 2}, Code: []byte{1, 2, 3}})
			return err
		}(),
		"positions": func() error {
			_, err := encodeOpenObjectAnswer(&OpenObjectAnswer{PositionMaps: []PositionMap{{PCs: []uint64{1}}}})
			return err
		}(),
		"variables": func() error {
			_, err := encodeOpenObjectAnswer(&OpenObjectAnswer{Variables: []Variable{{Start: []uint64{1}, End: []uint64{1}}}})
			return err
		}(),
	} {
		if err == nil {
			t.Errorf("%s: sent", name)
		}
	}
}

func TestEnumerationsOfTheProtocolHaveTheSameNumbers(t *testing.T) {
	for typ, numbers := range map[reflect.Type]map[int32]string{
		reflect.TypeFor[cfi.RuleKind]():        pb.RuleKind_name,
		reflect.TypeFor[cfi.CFAKind]():         pb.CFAKind_name,
		reflect.TypeFor[ByteOrder]():           pb.ByteOrder_name,
		reflect.TypeFor[RegisterClass]():       pb.RegisterClass_name,
		reflect.TypeFor[RegisterSource]():      pb.RegisterSource_name,
		reflect.TypeFor[SpaceScope]():          pb.SpaceScope_name,
		reflect.TypeFor[Narrow]():              pb.Narrow_name,
		reflect.TypeFor[locexpr.FloatFormat](): pb.FloatEncoding_name,
		reflect.TypeFor[RowPriority]():         pb.RowPriority_name,
		reflect.TypeFor[FunctionKind]():        pb.FunctionKind_name,
		reflect.TypeFor[MapKind]():             pb.MapKind_name,
		reflect.TypeFor[ReturnClass]():         pb.ReturnClass_name,

		reflect.TypeFor[InstructionKind](): pb.InstructionKind_name,
	} {
		if uint64(len(numbers)) != lastOf[typ]+1 {
			t.Errorf("%v has %d values, the protocol %d", typ, lastOf[typ]+1, len(numbers))
		}
	}
	for typ, last := range lastOf {
		if declared := constantsOf(t, typ); uint64(declared) != last+1 {
			t.Errorf("%v: %d values are declared, the messages carry %d", typ, declared, last+1)
		}
	}
	for number, name := range map[cfi.RuleKind]string{
		cfi.Undefined: "RULE_UNDEFINED", cfi.SameValue: "RULE_SAME_VALUE", cfi.Offset: "RULE_OFFSET",
		cfi.ValOffset: "RULE_VAL_OFFSET", cfi.Register: "RULE_REGISTER", cfi.Expression: "RULE_EXPRESSION",
		cfi.ValExpression: "RULE_VAL_EXPRESSION", cfi.Architectural: "RULE_ARCHITECTURAL",
		cfi.ValOffsetPerLane: "RULE_VAL_OFFSET_PER_LANE",
	} {
		if pb.RuleKind_name[int32(number)] != name {
			t.Errorf("RuleKind %d is %s in the protocol, expected %s", number, pb.RuleKind_name[int32(number)], name)
		}
	}
}

// constantsOf counts the constants of an enumeration in the source that
// declares it, so that a value added there is not refused here.
func constantsOf(t *testing.T, typ reflect.Type) int {
	t.Helper()
	dir := "../" + strings.TrimPrefix(typ.PkgPath(), "github.com/unwindd/unwindd/")
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			inside := false
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				if value.Type != nil || value.Values != nil {
					name, ok := value.Type.(*ast.Ident)
					inside = ok && name.Name == typ.Name()
				}
				if inside {
					count += len(value.Names)
				}
			}
		}
	}
	return count
}

// TestColumnsOfZerosAreLeftOut: symbols of an engine that is older than st_other and the
// sections of symbols have neither column.
func TestColumnsOfZerosAreLeftOut(t *testing.T) {
	m := &OpenObjectRequest{Symbols: []SymbolInfo{{Name: "a"}, {Name: "b", Address: 8}}}
	p := encodeOpenObjectRequest(m)
	if p.Symbols.Others != nil || p.Symbols.Sections != nil {
		t.Errorf("columns %v and %v of nothing but zeros", p.Symbols.Others, p.Symbols.Sections)
	}
	if back, err := decodeOpenObjectRequest(p); err != nil || !cmp.Equal(m, back) {
		t.Errorf("%v: %s", err, cmp.Diff(m, back))
	}
	for field, spoil := range map[string]func(){
		"symbols.others: 1 elements":   func() { p.Symbols.Others = []uint32{1} },
		"symbols.others: 256":          func() { p.Symbols.Others = []uint32{0, 256} },
		"symbols.sections: 3 elements": func() { p.Symbols.Others, p.Symbols.Sections = nil, []uint32{0, 1, 2} },
	} {
		spoil()
		if _, err := decodeOpenObjectRequest(p); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
		p.Symbols.Others, p.Symbols.Sections = nil, nil
	}
}
