// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcgzip "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine/internal/otlpexport"
	"github.com/unwindd/unwindd/engine/report"
)

// sink is a collector that keeps what it takes.
type sink struct {
	url string

	mu      sync.Mutex
	answers []sinkAnswer // the next ones; none: it takes all
	taken   []*profiles.ProfilesData
	headers http.Header // of the last request
}

// sinkAnswer is the answer of a sink to one request.
type sinkAnswer struct {
	status     int
	retryAfter string
	body       []byte
}

func newSink(t *testing.T) *sink {
	s := &sink{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// ServeHTTP implements http.Handler.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.headers = r.Header
	answer := sinkAnswer{status: http.StatusOK}
	if len(s.answers) > 0 {
		answer, s.answers = s.answers[0], s.answers[1:]
	}
	if answer.status == http.StatusOK {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		b, err := io.ReadAll(z)
		d := &profiles.ProfilesData{}
		if err != nil || proto.Unmarshal(b, d) != nil {
			http.Error(w, "no profiles", http.StatusBadRequest)
			return
		}
		s.taken = append(s.taken, d)
	}
	w.Header().Set("Content-Type", protobufType)
	if answer.retryAfter != "" {
		w.Header().Set("Retry-After", answer.retryAfter)
	}
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body)
}

// next sets the next answers.
func (s *sink) next(answers ...sinkAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = answers
}

// take returns what came since the last time, and the headers of the last request.
func (s *sink) take() (list []*profiles.ProfilesData, h http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, s.taken = s.taken, nil
	return list, s.headers
}

// relayServer is a server that takes profiles, with clients of it.
type relayServer struct {
	*testServer
	address string
}

// startRelay starts a server that passes profiles on.
func startRelay(t *testing.T, o Options, to string) *relayServer {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	if to == "" { // itself
		to = "http://" + l.Addr().String()
	}
	if o.Collector, err = report.NewCollector(to); err != nil {
		t.Fatal(err)
	}
	if err := o.Collector.Connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Collector.Close)
	s := &relayServer{start(t, o), l.Addr().String()}
	go func() { _ = s.ServeProfiles(l, nil) }()
	return s
}

// aProfile is a request of one profile, which has a mapping with a build ID.
func aProfile(t *testing.T, name string) []byte {
	t.Helper()
	d := &profiles.ProfilesData{
		ResourceProfiles: []*profiles.ResourceProfiles{{
			Resource: &resource.Resource{},
			ScopeProfiles: []*profiles.ScopeProfiles{{Profiles: []*profiles.Profile{{
				SampleType: &profiles.ValueType{TypeStrindex: 1, UnitStrindex: 2}, TimeUnixNano: 7, DurationNano: 9, ProfileId: []byte("0123456789abcdef"),
				Samples: []*profiles.Sample{{StackIndex: 1, Values: []int64{3}}},
			}}}},
		}},
		Dictionary: &profiles.ProfilesDictionary{
			MappingTable:   []*profiles.Mapping{{}, {MemoryStart: 0x1000, MemoryLimit: 0x2000, FilenameStrindex: 3}},
			LocationTable:  []*profiles.Location{{}, {MappingIndex: 1, Address: 0x1234}},
			FunctionTable:  []*profiles.Function{{}},
			LinkTable:      []*profiles.Link{{}},
			AttributeTable: []*profiles.KeyValueAndUnit{{}},
			StringTable:    []string{"", "samples", "count", name},
			StackTable:     []*profiles.Stack{{}, {LocationIndices: []int32{1}}},
		},
	}
	b, err := proto.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// export sends a request by gRPC.
func (s *relayServer) export(ctx context.Context, t *testing.T, call string, request []byte, o ...grpc.CallOption) ([]byte, error) {
	t.Helper()
	c, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{})))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var response []byte
	err = c.Invoke(ctx, call, &request, &response, o...)
	return response, err
}

// send sends a request by HTTP, and returns the answer. Headers are names and values.
func (s *relayServer) send(t *testing.T, path, kind string, body []byte, headers ...string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.address+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, b
}

func gzipText(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// inJSON returns a request in OpenTelemetry's JSON, which has identifiers in hexadecimal.
func inJSON(t *testing.T, request []byte) []byte {
	t.Helper()
	d := &profiles.ProfilesData{}
	if err := proto.Unmarshal(request, d); err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	id := d.ResourceProfiles[0].ScopeProfiles[0].Profiles[0].ProfileId
	return bytes.ReplaceAll(text, []byte(base64.StdEncoding.EncodeToString(id)), []byte(hex.EncodeToString(id)))
}

// wantTaken checks that the sink took one request, with the contents of another.
func (s *sink) wantTaken(t *testing.T, request []byte) http.Header {
	t.Helper()
	list, h := s.take()
	want := &profiles.ProfilesData{}
	if err := proto.Unmarshal(request, want); err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || !proto.Equal(list[0], want) {
		t.Errorf("the collector took %d requests: %v, expected %v", len(list), list, want)
	}
	return h
}

// TestProfilesArePassedOnInEachForm sends a profile in each form, and compares what the collector gets; what
// the collector says of it comes back in the same form.
func TestProfilesArePassedOnInEachForm(t *testing.T) {
	to := newSink(t)
	s := startRelay(t, testOptions(t), to.url)
	request := aProfile(t, "words")
	for name, send := range map[string]func(t *testing.T) string{
		"gRPC": func(t *testing.T) string {
			b, err := s.export(t.Context(), t, profilesCall, request)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		},
		"gRPC, packed": func(t *testing.T) string {
			b, err := s.export(t.Context(), t, profilesCall, request, grpc.UseCompressor(grpcgzip.Name))
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		},
		"HTTP": func(t *testing.T) string {
			answer, b := s.send(t, profilesPath, protobufType, request)
			if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != protobufType {
				t.Errorf("%s %s", answer.Status, answer.Header)
			}
			return string(b)
		},
		"HTTP, packed": func(t *testing.T) string {
			_, b := s.send(t, profilesPath, protobufType, gzipText(t, request), "Content-Encoding", "gzip")
			return string(b)
		},
		"JSON": func(t *testing.T) string {
			answer, b := s.send(t, profilesPath, "application/json; charset=utf-8", inJSON(t, request))
			if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != contentTypes["json"] {
				t.Errorf("%s %s", answer.Status, answer.Header)
			}
			return string(b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			empty, said := "", string(encodeTaken(otlpexport.Answer{Rejected: 3, Message: "too old"}))
			if name == "JSON" {
				empty, said = "{}", `{"partialSuccess":{"rejectedProfiles":"3","errorMessage":"too old"}}`
			}
			if got := send(t); got != empty {
				t.Errorf("%q, expected %q", got, empty)
			}
			to.wantTaken(t, request)
			to.next(sinkAnswer{status: http.StatusOK, body: encodeTaken(otlpexport.Answer{Rejected: 3, Message: "too old"})})
			if got := send(t); got != said {
				t.Errorf("%q, expected %q", got, said)
			}
			to.wantTaken(t, request)
		})
	}
	until(t, "all bytes and places are given back", func() bool { return s.budget.inUse()+s.memory.inUse() == 0 })
}

// TestFramesGetNamesOnTheWay has the frames of a profile named and counted, once their file was put.
func TestFramesGetNamesOnTheWay(t *testing.T) {
	to := newSink(t)
	s := startRelay(t, testOptions(t), to.url)
	s.putCrash(t)
	d := &profiles.ProfilesData{}
	if err := proto.Unmarshal(aProfile(t, "server"), d); err != nil {
		t.Fatal(err)
	}
	d.Dictionary.StringTable = append(d.Dictionary.StringTable, "process.executable.build_id.gnu")
	d.Dictionary.AttributeTable = append(d.Dictionary.AttributeTable, &profiles.KeyValueAndUnit{
		KeyStrindex: 4, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: crashID}},
	})
	d.Dictionary.MappingTable[1] = &profiles.Mapping{MemoryStart: 0x401000, MemoryLimit: 0x48d000, FileOffset: 0x1000, FilenameStrindex: 3, AttributeIndices: []int32{1}}
	d.Dictionary.LocationTable[1].Address = 0x401911
	d.Dictionary.LocationTable = append(d.Dictionary.LocationTable, &profiles.Location{Address: 7})
	request, err := proto.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.export(t.Context(), t, profilesCall, request); err != nil {
		t.Fatal(err)
	}
	list, _ := to.take()
	if len(list) != 1 {
		t.Fatalf("the collector took %d requests", len(list))
	}
	got := list[0].GetDictionary()
	if l := got.LocationTable[1].Lines; len(l) != 1 || got.StringTable[got.FunctionTable[l[0].FunctionIndex].NameStrindex] != "read_body" {
		t.Errorf("%v", list[0])
	}
	_, text := s.ask(t, "GET", "/metrics", nil)
	for _, want := range []string{
		`unwindd_otlp_frames_total{names="named"} 1`, `unwindd_otlp_frames_total{names="no-mapping"} 1`, `unwindd_otlp_frames_total{names="had"} 0`,
		`unwindd_otlp_profiles_total{names="requested"} 1`, `unwindd_otlp_forward_seconds_count{outcome="taken"} 1`, "unwindd_message_bytes 0",
		`unwindd_requests_total{kind="otlp",status="ok"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in the figures", want)
		}
	}
}

// wantRetryLater checks that a call failed, and is to be sent again.
func wantRetryLater(t *testing.T, err error, code codes.Code) {
	t.Helper()
	st := status.Convert(err)
	if st.Code() != code {
		t.Errorf("%v, expected %v", err, code)
	}
	for _, d := range st.Details() {
		if r, ok := d.(*errdetails.RetryInfo); ok && r.GetRetryDelay().AsDuration() >= retryAfter {
			return
		}
	}
	t.Errorf("%v: it does not say when to come again: %v", err, st.Details())
}

// TestNothingIsTakenThatTheCollectorHasNot answers a sender by what the collector answers: where it is
// not there, or busy, the sender is to send again; what it will never take is refused.
func TestNothingIsTakenThatTheCollectorHasNot(t *testing.T) {
	to := newSink(t)
	s := startRelay(t, testOptions(t), to.url)
	request := aProfile(t, "words")
	inTime, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()

	to.next(sinkAnswer{status: 503, retryAfter: "600"})
	_, err := s.export(inTime, t, profilesCall, request)
	wantRetryLater(t, err, codes.Unavailable)
	to.next(sinkAnswer{status: 429, retryAfter: "600"})
	answer, b := s.send(t, profilesPath, protobufType, request)
	said := &rpcstatus.Status{}
	if err := proto.Unmarshal(b, said); err != nil || answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") != "600" || codes.Code(said.Code) != codes.Unavailable {
		t.Errorf("%s %s %v %v", answer.Status, answer.Header, said, err)
	}
	to.next(sinkAnswer{status: 401}) // the server's fault, and not the sender's
	_, err = s.export(inTime, t, profilesCall, request)
	wantRetryLater(t, err, codes.Unavailable)
	to.next(sinkAnswer{status: 400})
	if _, err = s.export(inTime, t, profilesCall, request); status.Code(err) != codes.InvalidArgument {
		t.Errorf("%v, expected that it is refused for good", err)
	}
	to.next(sinkAnswer{status: 413}, sinkAnswer{status: 413})
	if answer, _ := s.send(t, profilesPath, protobufType, request); answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%s, expected that it is too large", answer.Status)
	}
	if list, _ := to.take(); len(list) != 0 {
		t.Errorf("the collector took %d requests", len(list))
	}
	to.next(sinkAnswer{status: 503}) // once: it is sent again
	if _, err := s.export(inTime, t, profilesCall, request); err != nil {
		t.Error(err)
	}
	to.wantTaken(t, request)
}

// TestACollectorThatIsNotThere sends a profile, with little time, to a server at whose collector's address nothing listens.
func TestACollectorThatIsNotThere(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	s := startRelay(t, testOptions(t), "grpc://"+l.Addr().String())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err = s.export(ctx, t, profilesCall, aProfile(t, "words"))
	wantRetryLater(t, err, codes.Unavailable)
}

// TestProfilesWithoutNamesAreNotLost passes on as it came what no worker has named.
func TestProfilesWithoutNamesAreNotLost(t *testing.T) {
	request := aProfile(t, "words")
	for reason, c := range map[string]struct {
		change  func(*Options)
		prepare func(*relayServer, *sink)
		timeout time.Duration
	}{
		"timed-out": {change: func(o *Options) { o.Time = time.Nanosecond }},
		"late": {timeout: 3 * time.Second, prepare: func(s *relayServer, _ *sink) {
			s.fill(t)
		}},
		"too-large":   {prepare: func(_ *relayServer, to *sink) { to.next(sinkAnswer{status: 413}) }},
		"long-answer": {change: func(o *Options) { o.Answer = 10 }},
	} {
		t.Run(reason, func(t *testing.T) {
			o, to := testOptions(t), newSink(t)
			if c.change != nil {
				c.change(&o)
			}
			s := startRelay(t, o, to.url)
			if c.prepare != nil {
				c.prepare(s, to)
			}
			ctx, cancel := context.WithTimeout(t.Context(), max(c.timeout, 0))
			if c.timeout == 0 {
				ctx, cancel = context.WithCancel(t.Context())
			}
			defer cancel()
			if _, err := s.export(ctx, t, profilesCall, request); err != nil {
				t.Fatal(err)
			}
			to.wantTaken(t, request)
			if text := s.log.String(); !strings.Contains(text, "reason="+reason) {
				t.Errorf("the log does not say why:\n%s", text)
			}
			_, text := s.ask(t, "GET", "/metrics", nil)
			if want := `unwindd_otlp_profiles_total{names="` + reason + `"} 1`; !strings.Contains(text, want) {
				t.Errorf("no %s in the figures", want)
			}
		})
	}
}

// TestASenderIsToldToComeAgain has no place for a request, or no room for its bytes.
func TestASenderIsToldToComeAgain(t *testing.T) {
	to, o := newSink(t), testOptions(t)
	o.Waiting = 0
	s := startRelay(t, o, to.url)
	request := aProfile(t, "words")
	busy := func(name string) {
		t.Helper()
		_, err := s.export(t.Context(), t, profilesCall, request)
		wantRetryLater(t, err, codes.ResourceExhausted)
		answer, _ := s.send(t, profilesPath, protobufType, request)
		if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %s %v", name, answer.Status, answer.Header)
		}
	}
	free := s.fill(t)
	busy("no worker")
	free()
	s.memory.resize(1)
	busy("no memory")
	s.memory.resize(messageMemory)
	all := s.requests.most
	s.requests.resize(1)
	busy("no request")
	s.requests.resize(all)
	n := int64(len(request))
	s.budget.resize(4 * n)
	another := s.budget.of("another")
	if err := another.take(2 * n); err != nil {
		t.Fatal(err)
	}
	if err := s.budget.of("a third").take(n); err != nil {
		t.Fatal(err)
	}
	busy("no room on disk")
	s.budget.resize(o.Spool)
	another.give(2 * n)
	if list, _ := to.take(); len(list) != 0 {
		t.Errorf("the collector took %d requests", len(list))
	}
	if _, err := s.export(t.Context(), t, profilesCall, request); err != nil {
		t.Error(err)
	}
	to.wantTaken(t, request)
	s.Refuse()
	_, err := s.export(t.Context(), t, profilesCall, request)
	wantRetryLater(t, err, codes.Unavailable)
}

// TestHeadersThatArePassedOn sends headers, of which the collector gets some and never the others.
func TestHeadersThatArePassedOn(t *testing.T) {
	to := newSink(t)
	s := startRelay(t, testOptions(t), to.url)
	request := aProfile(t, "words")
	s.send(t, profilesPath, protobufType, request,
		"X-Scope-OrgID", "tenant", "Authorization", "Bearer secret", "Cookie", "a=b", "Baggage", "k=\u00fc", "X-Other", "x", "Traceparent", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	h := to.wantTaken(t, request)
	for name, want := range map[string]string{
		"X-Scope-Orgid": "tenant", "Traceparent": "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01",
		"Authorization": "", "Cookie": "", "Baggage": "", "X-Other": "", "Unwindd-Via": s.relay.id,
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s is %q, expected %q", name, got, want)
		}
	}
	md := metadata.AppendToOutgoingContext(t.Context(), "x-scope-orgid", "another")
	if _, err := s.export(md, t, profilesCall, request); err != nil {
		t.Fatal(err)
	}
	if got := to.wantTaken(t, request).Get("X-Scope-Orgid"); got != "another" {
		t.Errorf("the tenant is %q", got)
	}
}

// TestALoopOfProfilesEnds has a server that is its own collector.
func TestALoopOfProfilesEnds(t *testing.T) {
	s := startRelay(t, testOptions(t), "")
	if _, err := s.export(t.Context(), t, profilesCall, aProfile(t, "words")); status.Code(err) != codes.Unavailable {
		t.Errorf("%v, expected that it is not taken", err)
	}
	if text := s.log.String(); !strings.Contains(text, "came through this server before") {
		t.Errorf("the log does not say why:\n%s", text)
	}
}

// TestWhatIsNoProfile has other signals, and requests that are malformed.
func TestWhatIsNoProfile(t *testing.T) {
	to := newSink(t)
	s := startRelay(t, testOptions(t), to.url)
	request := aProfile(t, "words")
	for _, service := range []string{"trace.v1.TraceService", "metrics.v1.MetricsService", "logs.v1.LogsService"} {
		_, err := s.export(t.Context(), t, "/opentelemetry.proto.collector."+service+"/Export", request)
		if st := status.Convert(err); st.Code() != codes.Unimplemented || !strings.Contains(st.Message(), "profiles of OpenTelemetry and nothing else") {
			t.Errorf("%s: %v", service, err)
		}
	}
	bomb := gzipText(t, make([]byte, maxProfiles+1))
	large := binary.BigEndian.AppendUint32([]byte{0}, maxProfiles+1)
	for name, c := range map[string]struct {
		path, kind, encoding string
		body                 []byte
		status               int
		words                string
	}{
		"traces":           {"/v1/traces", protobufType, "", request, 404, "nothing else"},
		"logs in JSON":     {"/v1/logs", "application/json", "", []byte("{}"), 404, "nothing else"},
		"another request":  {"/v1/stack", "", "", request, 404, "nothing else"},
		"another kind":     {profilesPath, "text/plain", "", request, 415, "expected application/x-protobuf"},
		"another encoding": {profilesPath, protobufType, "br", request, 400, "expected gzip or none"},
		"no gzip":          {profilesPath, protobufType, "gzip", request, 400, "the body cannot be read"},
		"half of gzip":     {profilesPath, protobufType, "gzip", gzipText(t, request)[:20], 400, "ended before"},
		"a bomb":           {profilesPath, protobufType, "gzip", bomb, 413, "67108864 bytes"},
		"no JSON":          {profilesPath, "application/json", "", []byte(`{"resourceProfiles":7}`), 400, "expected a list"},
		"long JSON":        {profilesPath, "application/json", "", bytes.Repeat([]byte(" "), maxJSON+1), 413, "16777216 bytes"},
	} {
		var headers []string
		if c.encoding != "" {
			headers = []string{"Content-Encoding", c.encoding}
		}
		answer, b := s.send(t, c.path, c.kind, c.body, headers...)
		if answer.StatusCode != c.status || !strings.Contains(string(b), c.words) {
			t.Errorf("%s: %s %q, expected %d with %q", name, answer.Status, b, c.status, c.words)
		}
	}
	for name, c := range map[string]struct {
		body, words string
		code        codes.Code
	}{
		"nothing":            {"", "ended before", codes.InvalidArgument},
		"half a length":      {"\x00\x00", "ended before", codes.InvalidArgument},
		"half a message":     {"\x00\x00\x00\x00\x09abc", "ended before", codes.InvalidArgument},
		"two messages":       {"\x00\x00\x00\x00\x01a\x00\x00\x00\x00\x01a", "more than one message", codes.InvalidArgument},
		"packed by nobody":   {"\x01\x00\x00\x00\x01a", "one", codes.InvalidArgument},
		"a length of it all": {string(large) + strings.Repeat("x", maxProfiles+1), "67108864 bytes", codes.ResourceExhausted},
	} {
		st := s.frame(t, strings.NewReader(c.body))
		if st.Code() != c.code || !strings.Contains(st.Message(), c.words) {
			t.Errorf("%s: %v, expected %v with %q", name, st, c.code, c.words)
		}
	}
	if list, _ := to.take(); len(list) != 0 {
		t.Errorf("the collector took %d requests", len(list))
	}
	// What only the collector can judge is its own: it refuses it.
	if answer, _ := s.send(t, profilesPath, protobufType, []byte("\x0a\xff")); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("%s, expected the collector's refusal", answer.Status)
	}
	// Nothing is a request, too.
	if answer, b := s.send(t, profilesPath, protobufType, nil); answer.StatusCode != http.StatusOK || len(b) != 0 {
		t.Errorf("%s %q", answer.Status, b)
	}
	until(t, "all bytes are given back", func() bool { return s.budget.inUse()+s.memory.inUse() == 0 })
}

// frame sends the body of a call of gRPC as it is, and returns the status of the answer.
func (s *relayServer) frame(t *testing.T, body io.Reader) *status.Status {
	t.Helper()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.address+profilesCall, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", callType)
	r.Header.Set("Grpc-Encoding", "none")
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.ReadAll(answer.Body); err != nil {
		t.Fatal(err)
	}
	code, err := strconv.Atoi(answer.Header.Get("Grpc-Status"))
	if err != nil {
		t.Errorf("%s %v %v: no status", answer.Status, answer.Header, answer.Trailer)
	}
	message, err := url.PathUnescape(answer.Header.Get("Grpc-Message"))
	if err != nil {
		t.Error(err)
	}
	return status.New(codes.Code(code), message) //nolint:gosec // of this server
}

// TestSendersThatSendNothing has one that stops in the middle of its request, by gRPC and by HTTP.
func TestSendersThatSendNothing(t *testing.T) {
	o := testOptions(t)
	o.Idle = 200 * time.Millisecond
	s := startRelay(t, o, newSink(t).url)
	body, end := io.Pipe()
	defer end.Close()
	go func() { _, _ = io.WriteString(end, "\x00\x00\x00\x00\x09abc") }() // the request may have ended
	if st := s.frame(t, body); st.Code() != codes.DeadlineExceeded {
		t.Errorf("%v, expected that nothing came", st)
	}
	post := "POST " + profilesPath + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\nContent-Length: 10\r\n\r\nx"
	at := &testServer{url: "http://" + s.address}
	if got, body := at.raw(t, post); got != http.StatusRequestTimeout || !strings.Contains(body, "nothing came") {
		t.Errorf("%d %q", got, body)
	}
}

// TestSendersAreLetInAsOthers has the tokens and the names of the server.
func TestSendersAreLetInAsOthers(t *testing.T) {
	to, o := newSink(t), testOptions(t)
	tokens, err := ReadTokens(strings.NewReader("agent 0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	o.Tokens = tokens
	s := startRelay(t, o, to.url)
	request := aProfile(t, "words")
	if _, err := s.export(t.Context(), t, profilesCall, request); status.Code(err) != codes.Unauthenticated {
		t.Errorf("%v, expected a token", err)
	}
	with := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer 0123456789abcdef")
	if _, err := s.export(with, t, profilesCall, request); err != nil {
		t.Error(err)
	}
	to.wantTaken(t, request)
	if text := s.log.String(); !strings.Contains(text, "caller=agent") {
		t.Errorf("the log does not name the sender:\n%s", text)
	}
}

// TestDeadlinesOfCalls has the header by which callers of gRPC tell their deadlines.
func TestDeadlinesOfCalls(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5S": 5 * time.Second, "100m": 100 * time.Millisecond, "7u": 7 * time.Microsecond, "9n": 9, "2M": 2 * time.Minute, "24H": 24 * time.Hour,
		"25H": -1, "": -1, "S": -1, "5": -1, "5X": -1, "-5S": -1, "123456789S": -1, "99999999S": -1,
	} {
		if got, ok := parseTimeout(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %v %v, expected %v", text, got, ok, want)
		}
	}
}

// FuzzBodiesOfProfiles has bodies of calls of gRPC, and of requests that are packed.
func FuzzBodiesOfProfiles(f *testing.F) {
	packed := gzipText(f, []byte("\x0a\x04\x12\x02\x12\x00"))
	f.Add([]byte("\x00\x00\x00\x00\x06\x0a\x04\x12\x02\x12\x00"), "", true)
	f.Add(append(binary.BigEndian.AppendUint32([]byte{1}, uint32(len(packed))), packed...), "gzip", true)
	f.Add(packed, "gzip", false)
	f.Fuzz(func(t *testing.T, body []byte, encoding string, isCall bool) {
		r := &http.Request{Header: http.Header{"Grpc-Encoding": {encoding}, "Content-Encoding": {encoding}}, Body: io.NopCloser(bytes.NewReader(body))}
		open := openHTTP
		if isCall {
			open = openGRPC
		}
		const most = 1 << 20
		message, err := io.ReadAll(&boundedReader{r: &openedReader{open: func() (io.Reader, error) { return open(r) }}, most: most})
		if len(message) > most {
			t.Errorf("%d bytes came through", len(message))
		}
		if err == nil && countProfiles(message) > len(message)/2 {
			t.Errorf("%d profiles in %d bytes", countProfiles(message), len(message))
		}
	})
}
