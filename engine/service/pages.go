// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service/internal/page"
	"github.com/unwindd/unwindd/engine/service/internal/reports"
)

// This file answers with pages, and with reports that are kept for them.

// reportsPath is the path of stored reports.
const reportsPath = "/reports/"

// pageHeaders are the headers of pages: no other site shows them in a frame, opens them as
// its own, or learns their addresses, which are all that it takes to read a report.
var pageHeaders = map[string]string{
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"X-Frame-Options":              "DENY",
	"Cache-Control":                "no-store",
}

func setPageHeaders(w http.ResponseWriter, policy string) {
	for name, value := range pageHeaders {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Security-Policy", policy)
}

// anybody is the caller's name of a request without a token.
const anybody = "(anybody)"

// isForAnybody reports whether a request is let in without a token: it asks for the page, which
// contains no data, and asks for a token itself.
func isForAnybody(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	isPage := strings.HasPrefix(r.URL.Path, reportsPath) && strings.Contains(r.Header.Get("Accept"), "text/html")
	return r.URL.Path == "/" || r.URL.Path == "/healthz" || isPage && r.Header.Get("Authorization") == ""
}

// showPage answers with the page.
func (s *Server) showPage(w http.ResponseWriter, _ *http.Request, req *request) error {
	setPageHeaders(w, page.Policy())
	w.Header().Set("Content-Type", contentTypes["html"])
	err := page.Write(w, page.About{NeedsToken: req.caller == anybody, KeepsAny: s.reports != nil, MaxBody: s.now().Body})
	if err != nil {
		return &brokenError{err}
	}
	return nil
}

// errKeepsNone is the error of a server that keeps no reports.
var errKeepsNone = badRequest.new("this server keeps no reports")

// ifKept returns a handler, unless the server keeps no reports.
func (s *Server) ifKept(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request, req *request) error {
		if s.reports == nil {
			return errKeepsNone
		}
		return h(w, r, req)
	}
}

// keep stores a report, and answers with its place.
func (s *Server) keep(w http.ResponseWriter, a *answer, h reports.Header) error {
	id, size, err := s.reports.Keep(h, a)
	if err != nil {
		return err
	}
	<-a.done
	w.Header().Set("Content-Type", contentTypes["json"])
	w.Header().Set("Location", reportsPath+id)
	w.WriteHeader(http.StatusCreated)
	_ = report.WriteJSON(w, struct { // the caller may be gone
		ID       string `json:"id"`
		Bytes    int64  `json:"bytes"`
		Unwalked string `json:"unwalked,omitempty"`
	}{id, size, a.facts.Unwalked})
	return nil
}

// getReport answers with a stored report. A browser without the token that the server wants
// gets the page, which asks for the token, then for the report.
func (s *Server) getReport(w http.ResponseWriter, r *http.Request, req *request) error {
	if req.caller == anybody {
		return s.showPage(w, r, req)
	}
	if s.reports == nil {
		return errKeepsNone
	}
	kept, err := s.reports.Open(r.PathValue("id"))
	if err != nil {
		return keptProblem(err)
	}
	defer kept.Close()
	setPageHeaders(w, page.ReportPolicy())
	w.Header().Set("Content-Type", kept.Type)
	buf := make([]byte, 64<<10)
	for {
		n, err := kept.Read(buf)
		if _, err := w.Write(buf[:n]); err != nil {
			return &brokenError{canceled.new("the caller took nothing more: " + err.Error())}
		}
		s.metrics.sent(n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &brokenError{err}
		}
	}
}

// removeReport removes a stored report.
func (s *Server) removeReport(w http.ResponseWriter, r *http.Request, _ *request) error {
	if s.reports == nil {
		return errKeepsNone
	}
	if err := s.reports.Remove(r.PathValue("id")); err != nil {
		return keptProblem(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// keptProblem returns the problem of an error of the stored reports.
func keptProblem(err error) error {
	if errors.Is(err, reports.ErrNone) {
		return notFound.new(err.Error())
	}
	return err
}
