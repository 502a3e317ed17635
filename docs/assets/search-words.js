"use strict";
/* The search has no stop words in its index, but takes those of a question for beginnings of other words ("to":
   torch, tools), which then decide. A question is asked without them. */
(() => {
  const QUERY = 2; // of the messages to the search's worker
  const STOP_WORDS = new Set(
    ("a about all am an and any are as at be but by can could did do does for from get has have how i if in into is it "
      + "its me my no not of on or our should so that the their then there this to was we what when where which who why "
      + "will with would you your").split(" "),
  );
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function postWithoutStopWords(message, ...more) {
    if (message && message.type === QUERY && typeof message.data === "string") {
      const words = message.data.split(/\s+/).filter((word) => !STOP_WORDS.has(word.toLowerCase()));
      if (words.some(Boolean)) message = { ...message, data: words.join(" ") };
    }
    return post.call(this, message, ...more);
  };
})();
