// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <thread>
#include <vector>

template <typename T> __attribute__((noinline)) size_t count(const std::vector<T> &words)
{
	std::map<T, size_t> seen;
	for (auto &w : words)
		seen[w]++;
	return seen.size();
}

static int seconds = 2;

static void work()
{
	std::vector<std::string> words;
	for (int i = 0; i < 5000; i++)
		words.push_back("word" + std::to_string(i * 7919 % 1000));
	for (time_t end = time(nullptr) + seconds; time(nullptr) < end;)
		if (count(words) != 1000)
			abort();
}

int main(int argc, char **argv)
{
	if (argc > 1)
		seconds = atoi(argv[1]);
	std::thread other(work);
	work();
	other.join();
}
