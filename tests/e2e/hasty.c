/* SPDX-License-Identifier: GPL-2.0 */
/* For LD_PRELOAD: a clock that is right at the start, and goes ten times too fast, so that a minute is over in six seconds. */
#include <time.h>

#define NS_PER_S 1000000000LL
#define HASTE 10

static struct timespec began;

__attribute__((constructor)) static void begin(void)
{
	clock_gettime(CLOCK_REALTIME, &began);
}

time_t time(time_t *timer)
{
	struct timespec now;
	long long ns;

	clock_gettime(CLOCK_REALTIME, &now);
	ns = (now.tv_sec - began.tv_sec) * NS_PER_S + now.tv_nsec - began.tv_nsec;
	now.tv_sec = began.tv_sec + (began.tv_nsec + ns * HASTE) / NS_PER_S;
	if (timer)
		*timer = now.tv_sec;
	return now.tv_sec;
}
