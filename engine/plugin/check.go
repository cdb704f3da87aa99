package plugin

import "github.com/unwindd/unwindd/sdk"

// validate checks an answer against the description and the request, by the
// answer's own method.
func validate[A, R any](answer *A, d *sdk.Description, req *R) error {
	switch v := any(answer).(type) {
	case interface {
		Validate(*sdk.Description, *R) error
	}:
		return v.Validate(d, req)
	case interface{ Validate(*sdk.Description) error }:
		return v.Validate(d)
	}
	return nil
}
