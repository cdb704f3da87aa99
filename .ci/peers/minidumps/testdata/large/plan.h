// A plan is the steps that a thread takes, one within the other.
struct plan {
	using function = int (*)(plan *);
	function *next, *end, last;
	int thread;
};
