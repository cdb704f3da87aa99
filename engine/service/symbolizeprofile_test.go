// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/pprof/profile"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"
)

// TestProfilesGetNamesOfWhatWasPut: a profile has no names before its executable is put, with the reason, and
// has them soon after that.
func TestProfilesGetNamesOfWhatWasPut(t *testing.T) {
	s := start(t, testOptions(t))
	otlp := crashProfile(t, 0x401911)
	answer, text := s.ask(t, http.MethodPost, "/v1/otlp/symbolize", bytes.NewReader(otlp))
	if detail := answer.Trailer.Get(trailerDetail); text != string(otlp) || !strings.Contains(detail, "1 frame of server (build ID "+crashID+"): ") {
		t.Errorf("%s, %q: %q", answer.Status, detail, text)
	}
	s.putCrash(t)
	var named profiles.ProfilesData
	until(t, "the executable is found", func() bool {
		text = s.post(t, "/v1/otlp/symbolize", otlp)
		return text != string(otlp)
	})
	if err := proto.Unmarshal([]byte(text), &named); err != nil {
		t.Fatal(err)
	}
	d := named.GetDictionary()
	if l := d.LocationTable[1].Lines; len(l) != 1 || d.StringTable[d.FunctionTable[l[0].FunctionIndex].NameStrindex] != "read_body" || named.ResourceProfiles[0].SchemaUrl != "kept" {
		t.Errorf("%v", &named)
	}

	m := &profile.Mapping{ID: 1, Start: 0x401000, Limit: 0x48d000, Offset: 0x1000, File: "server", BuildID: crashID}
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "cpu", Unit: "count"}}, Mapping: []*profile.Mapping{m}, Location: []*profile.Location{{ID: 1, Mapping: m, Address: 0x401911}}}
	p.Sample = []*profile.Sample{{Value: []int64{1}, Location: p.Location}}
	var packed bytes.Buffer
	if err := p.Write(&packed); err != nil {
		t.Fatal(err)
	}
	out, err := profile.ParseData([]byte(s.post(t, "/v1/pprof/symbolize", packed.Bytes())))
	if err != nil || len(out.Location[0].Line) != 1 || out.Location[0].Line[0].Function.Name != "read_body" {
		t.Errorf("%v: %v", err, out)
	}
	answer, text = s.ask(t, http.MethodPost, "/v1/otlp/symbolize", strings.NewReader("no profile"))
	wantProblem(t, answer, text, unreadable, "profile: as a message ProfilesData of OpenTelemetry: offset")
}

// crashProfile is a profile of OpenTelemetry with frames at addresses of the executable of a crash.
func crashProfile(t testing.TB, addresses ...uint64) []byte {
	t.Helper()
	d := &profiles.ProfilesDictionary{
		StringTable: []string{"", "process.executable.build_id.gnu", "server"},
		AttributeTable: []*profiles.KeyValueAndUnit{{}, {
			KeyStrindex: 1, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: crashID}},
		}},
		MappingTable:  []*profiles.Mapping{{}, {MemoryStart: 0x401000, MemoryLimit: 0x48d000, FileOffset: 0x1000, FilenameStrindex: 2, AttributeIndices: []int32{1}}},
		LocationTable: []*profiles.Location{{}},
	}
	for _, a := range addresses {
		d.LocationTable = append(d.LocationTable, &profiles.Location{MappingIndex: 1, Address: a})
	}
	b, err := proto.Marshal(&profiles.ProfilesData{ResourceProfiles: []*profiles.ResourceProfiles{{SchemaUrl: "kept"}}, Dictionary: d})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// BenchmarkProfilesOverHTTP has profiles of 2,000 frames named, by one caller and by several, whose names are
// known by then.
func BenchmarkProfilesOverHTTP(b *testing.B) {
	const frames = 2000
	s := start(b, testOptions(b))
	s.putCrash(b)
	var addresses []uint64
	for i := range uint64(frames) {
		addresses = append(addresses, 0x401000+i*271)
	}
	data := crashProfile(b, addresses...)
	post := func() {
		if text := s.post(b, "/v1/otlp/symbolize", data); len(text) <= len(data) {
			b.Error("it has no names")
		}
	}
	post()
	for _, callers := range []int{1, 8} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for range b.N {
						post()
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(frames*callers*b.N)/b.Elapsed().Seconds(), "frames/s")
		})
	}
}
